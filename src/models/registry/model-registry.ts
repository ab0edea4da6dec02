import { LlamaGymError } from "../../core/errors.js";
import type { DecoderConfig } from "../../engine/nn/decoder-config.js";
import { parseModelConfig } from "../architectures/index.js";
import type { ModelDefaults, ModelEntry } from "./model-entry.js";
import { findFamily, findNearestInFamily, parseParameterCount } from "./model-families.js";
import { modelList } from "./model-list.js";
import { estimateModelMemory, type MemoryUsage } from "../weights/estimate-model-memory.js";

/** A model on the Hugging Face hub that this library is meant for: small, and of a supported architecture. */
export interface RegisteredModel {
  /** The hub id. */
  readonly id: string;
  /** config.json's model_type. */
  readonly modelType: string;
  readonly parameters: number;
  /** Tokens that prompt and reply may have together. */
  readonly contextLength: number;
  readonly license: string;
  /** "chat" follows instructions; "base" goes on with a text. */
  readonly kind: "chat" | "base";
  /** Its terms must be accepted on the hub before its files can be had. */
  readonly gated: boolean;
  /** What is particular about talking to it. */
  readonly note: string | undefined;
  /** What suits it better than the settings' own defaults. */
  readonly defaults: ModelDefaults;
  /** About how many bytes of memory it takes. */
  readonly estimateMemory: (use?: MemoryUsage) => number;
}

/** A model by name: listed itself, or taken for another one of its family. */
export interface RegistryMatch {
  readonly model: RegisteredModel;
  /** The listed model that it is taken for, where it is not listed itself. */
  readonly similarTo: string | undefined;
}

/** Those that users add stand beside those of the package. */
const customModels = new Map<string, RegisteredModel>();
const builtInModels = modelList.map(toRegisteredModel);

/** All models that are known by name, smallest first. */
export function registeredModels(): readonly RegisteredModel[] {
  const all = [...builtInModels.filter(({ id }) => !customModels.has(id)), ...customModels.values()];
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
  const model = toRegisteredModel(entry);
  customModels.set(entry.id, model);
  return model;
}

/** A model by its hub id; one that is not listed is taken for the nearest of its family, with its own size. */
export function findModel(id: string): RegistryMatch | undefined {
  const [name] = id.split(/[:#]/);
  const exact = customModels.get(name) ?? builtInModels.find((model) => model.id.toLowerCase() === name.toLowerCase());
  if (exact !== undefined) return { model: exact, similarTo: undefined };
  const nearest = findNearestInFamily(name, modelList);
  if (nearest === undefined) return undefined;
  const similar = toRegisteredModel(nearest);
  const parameters = parseParameterCount(name) ?? similar.parameters;
  const ratio = parameters / similar.parameters;
  const { note, defaults } = isSameVariant(name, nearest.id) ? similar : { note: undefined, defaults: {} };
  const model = {
    ...similar,
    id: name,
    parameters,
    note,
    defaults,
    estimateMemory: (use: MemoryUsage = {}) => ratio * similar.estimateMemory(use),
  };
  return { model, similarTo: nearest.id };
}

/** Within a family, some models think and some do not; their names tell them apart. */
function isSameVariant(id: string, listedId: string): boolean {
  const getVariant = (name: string) => (name.toLowerCase().match(/instruct|thinking|base/g) ?? []).join();
  return getVariant(id) === getVariant(listedId);
}

/** The name of the family that an id belongs to. */
export function modelFamily(id: string): string | undefined {
  return findFamily(id)?.name;
}

function toRegisteredModel(entry: ModelEntry): RegisteredModel {
  const { id, parameters, license, config, kind = "chat", gated = false, note, defaults = {} } = entry;
  const network: DecoderConfig = parseModelConfig(config, `the entry of ${id}`);
  return {
    id,
    modelType: network.modelType,
    parameters,
    contextLength: network.maxPositions,
    license,
    kind,
    gated,
    note,
    defaults,
    estimateMemory: (use) => estimateModelMemory(network, use),
  };
}
