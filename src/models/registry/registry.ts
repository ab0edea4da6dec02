import { LlamaGymError } from "../../errors.js";
import type { DecoderConfig } from "../../nn/config.js";
import { parseModelConfig } from "../architectures/index.js";
import type { ModelDefaults, ModelEntry } from "./entry.js";
import { familyOf, nearestOfFamily, parametersInName } from "./families.js";
import { modelList } from "./list.js";
import { estimateMemory, type MemoryUse } from "../memory.js";

/** A model on the Hugging Face hub that this library is meant for: small, and of a supported architecture. */
export interface RegisteredModel {
  /** The hub id. */
  readonly id: string;
  /** config.json's model_type. */
  readonly modelType: string;
  readonly parameters: number;
  /** Tokens that prompt and reply may have together. */
  readonly context: number;
  readonly licence: string;
  /** "chat" follows instructions; "base" goes on with a text. */
  readonly kind: "chat" | "base";
  /** Its terms must be accepted on the hub before its files can be had. */
  readonly gated: boolean;
  /** What is particular about talking to it. */
  readonly quirk: string | undefined;
  /** What suits it better than the settings' own defaults. */
  readonly defaults: ModelDefaults;
  /** About how many bytes of memory it takes. */
  readonly memory: (use?: MemoryUse) => number;
}

/** A model by name: listed itself, or taken for another one of its family. */
export interface FoundModel {
  readonly model: RegisteredModel;
  /** The listed model that it is taken for, where it is not listed itself. */
  readonly takenFor: string | undefined;
}

/** Those that users add stand beside those of the package. */
const added = new Map<string, RegisteredModel>();
const listed = modelList.map(modelOf);

/** All models that are known by name, smallest first. */
export function registeredModels(): readonly RegisteredModel[] {
  const all = [...listed.filter(({ id }) => !added.has(id)), ...added.values()];
  return all.sort((a, b) => a.parameters - b.parameters);
}

/**
 * Adds a model to the registry of this process, or puts it in place of one with the same id. Throws INVALID_ARGUMENT for one without
 * an id or parameters, and what reading its config throws (MODEL_UNSUPPORTED, FILE_CORRUPT).
 */
export function registerModel(entry: ModelEntry): RegisteredModel {
  if (typeof entry.id !== "string" || entry.id === "" || !(entry.parameters > 0)) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      "A model is registered with its hub id, its number of parameters, its licence, and the sizes of its config.json (config).",
    );
  }
  const model = modelOf(entry);
  added.set(entry.id, model);
  return model;
}

/** A model by its hub id; one that is not listed is taken for the nearest of its family, with its own size. */
export function findModel(id: string): FoundModel | undefined {
  const [name] = id.split(/[:#]/);
  const own = added.get(name) ?? listed.find((model) => model.id.toLowerCase() === name.toLowerCase());
  if (own !== undefined) return { model: own, takenFor: undefined };
  const nearest = nearestOfFamily(name, modelList);
  if (nearest === undefined) return undefined;
  const like = modelOf(nearest);
  const parameters = parametersInName(name) ?? like.parameters;
  const ratio = parameters / like.parameters;
  const { quirk, defaults } = speaksLike(name, nearest.id) ? like : { quirk: undefined, defaults: {} };
  const model = {
    ...like,
    id: name,
    parameters,
    quirk,
    defaults,
    memory: (use: MemoryUse = {}) => ratio * like.memory(use),
  };
  return { model, takenFor: nearest.id };
}

/** Within a family, some models think and some do not; their names tell them apart. */
function speaksLike(id: string, listedId: string): boolean {
  const kinds = (name: string) => (name.toLowerCase().match(/instruct|thinking|base/g) ?? []).join();
  return kinds(id) === kinds(listedId);
}

/** The name of the family that an id belongs to. */
export function modelFamily(id: string): string | undefined {
  return familyOf(id)?.name;
}

function modelOf(entry: ModelEntry): RegisteredModel {
  const { id, parameters, licence, config, kind = "chat", gated = false, quirk, defaults = {} } = entry;
  const network: DecoderConfig = parseModelConfig(config, `the entry of ${id}`);
  return {
    id,
    modelType: network.modelType,
    parameters,
    context: network.maxPositions,
    licence,
    kind,
    gated,
    quirk,
    defaults,
    memory: (use) => estimateMemory(network, use),
  };
}
