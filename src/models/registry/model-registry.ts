import { LlamaGymError } from "../../core/errors.js";
import type { DecoderConfig } from "../../engine/nn/index.js";
import { parseModelConfig } from "../architectures/index.js";
import type { ModelDefaults, ModelEntry } from "./model-entry.js";
import { findFamily, findNearestInFamily, parseParameterCount } from "./model-families.js";
import { modelList } from "./model-list.js";
import { estimateModelMemory, type MemoryUsage } from "../weights/estimate-model-memory.js";

/** A registered model on the Hugging Face Hub. */
export interface RegisteredModel {
  /** The hub id. */
  readonly id: string;
  /** config.json's model_type. */
  readonly modelType: string;
  readonly parameters: number;
  /** Maximum tokens of prompt and completion together. */
  readonly contextLength: number;
  readonly license: string;
  /** "chat" follows instructions; "base" continues a text. */
  readonly kind: "chat" | "base";
  /** Whether its terms must be accepted on the hub before download. */
  readonly gated: boolean;
  /** Notes on prompting it. */
  readonly note: string | undefined;
  /** Recommended settings. */
  readonly defaults: ModelDefaults;
  /** Estimates its memory in bytes. */
  readonly estimateMemory: (use?: MemoryUsage) => number;
}

/** A registry match: the model itself, or the nearest of its family. */
export interface RegistryMatch {
  readonly model: RegisteredModel;
  /** The registered model it was matched with, if it is not registered itself. */
  readonly similarTo: string | undefined;
}

/** Models added by registerModel. */
const customModels = new Map<string, RegisteredModel>();
const builtInModels = modelList.map(toRegisteredModel);

/** Returns all registered models, smallest first. */
export function registeredModels(): readonly RegisteredModel[] {
  const all = [...builtInModels.filter(({ id }) => !customModels.has(id)), ...customModels.values()];
  return all.sort((a, b) => a.parameters - b.parameters);
}

/**
 * Adds a model to this process's registry or replaces the one with the same id. @throws
 * INVALID_ARGUMENT without an id or parameters, MODEL_UNSUPPORTED or FILE_CORRUPT for an invalid
 * config.
 */
export function registerModel(entry: ModelEntry): RegisteredModel {
  if (typeof entry.id !== "string" || entry.id === "" || !(entry.parameters > 0))
    throw new LlamaGymError("INVALID_ARGUMENT", "A model entry requires a hub `id` and a number of `parameters` > 0.");
  const model = toRegisteredModel(entry);
  customModels.set(entry.id, model);
  return model;
}

/** Finds a model by its hub id, or the nearest of its family in size. */
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

/** Families mix reasoning and other variants, distinguished by name. */
function isSameVariant(id: string, listedId: string): boolean {
  const getVariant = (name: string) => (name.toLowerCase().match(/instruct|thinking|base/g) ?? []).join();
  return getVariant(id) === getVariant(listedId);
}

/** Returns the name of an id's family. */
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
