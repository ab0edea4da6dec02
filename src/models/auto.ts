import { COUNT, oneOf, type OptionNames } from "../core/settings.js";
import { fs } from "#platform";
import { LlamaGymError } from "../core/errors.js";
import {
  isAdapterFolder,
  type AdapterConfig,
  readAdapter,
  readAdapterConfig,
  resolveModel,
  resolveOptionNames,
  type ResolveOptions,
} from "./files/index.js";
import { verifyChecksum, verifyChecksums } from "../core/files/checksums.js";
import { CausalLM, type ModelOptions } from "./causal-lm.js";
import { EMBEDDED_MODEL, getEmbeddedModelPath } from "./embedded-model.js";
import { loadAdapter } from "./save-model.js";

export { type ResolveOptions, resolveOptionNames };

export interface OpenOptions extends ModelOptions, ResolveOptions {}

/** The names of `OpenOptions`. */
export const openOptionNames: OptionNames<OpenOptions> = {
  ...resolveOptionNames,
  device: true,
  threads: COUNT,
  quantize: oneOf(8, 4),
  backwardPrecision: oneOf("float32", "int8"),
  gradientCheckpointing: Boolean,
};

/** An opened model and its location. */
export interface LoadedModel {
  readonly model: CausalLM;
  /** The path or hub id it was opened with; for an adapter, its base model's. */
  readonly name: string;
  /** The model's folder or GGUF file. */
  readonly path: string;
  /** The adapter's folder, if a folder with only an adapter was opened. */
  readonly adapterPath: string | undefined;
}

/**
 * Opens a model by path or hub id, or the embedded model ("embedded"). For a folder with only an
 * adapter, opens its base model with the adapter. @throws what `resolveModel`, `CausalLM.open` and
 * `loadAdapter` throw.
 */
export async function openPretrained(idOrPath: string, options: OpenOptions = {}): Promise<LoadedModel> {
  const path = await locate(idOrPath, options);
  if (!(await isAdapterOnly(path))) {
    await ((await fs.stat(path)).isFolder ? verifyChecksums(path) : verifyChecksum(path));
    return { model: await CausalLM.open(path, options), name: idOrPath, path, adapterPath: undefined };
  }
  const base = await findBaseModel(path, (await readAdapter(path)).config);
  const basePath = await locate(base.name, { ...options, revision: base.revision, file: undefined });
  if (await isAdapterOnly(basePath)) {
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `${path} is an adapter on another adapter. Merge the first one and open this one on the result.`,
    );
  }
  const model = await CausalLM.open(basePath, options);
  return { model: await loadAdapterOrClose(model, path), name: base.name, path: basePath, adapterPath: path };
}

/** Returns the folder or GGUF file of a model or adapter. */
async function locate(idOrPath: string, options: ResolveOptions): Promise<string> {
  return (await resolveModel(idOrPath === EMBEDDED_MODEL ? getEmbeddedModelPath() : idOrPath, options)).path;
}

/**
 * Adds an adapter from a folder or the hub, and returns its folder. @throws what `resolveModel` and
 * `loadAdapter` throw.
 */
export async function openAdapter(
  model: CausalLM,
  idOrPath: string,
  options: ResolveOptions = {},
): Promise<{ readonly causalLM: CausalLM; readonly path: string }> {
  const { path } = await resolveModel(idOrPath, options);
  return { causalLM: await loadAdapter(model, path), path };
}

/**
 * Checks that an adapter belongs to a model's base model and computes with the same scale as the
 * model's own adapter. @throws WEIGHTS_MISMATCH
 */
export async function checkAdapterBase(model: CausalLM, folder: string): Promise<void> {
  const { config } = await readAdapter(folder);
  const { baseModelNameOrPath: base } = config;
  const own = model.adapter?.config;
  if (base !== null) {
    const { name, revision } = await findBaseModel(folder, config);
    const path = fs.resolve(await locate(name, { revision }));
    if (path !== fs.resolve(model.source.path))
      throw new LlamaGymError(
        "WEIGHTS_MISMATCH",
        `${folder} is an adapter of the base model ${name}, but this model's is ${model.source.path}.`,
      );
  }
  type Scale = Pick<AdapterConfig, "r" | "loraAlpha" | "useRslora" | "rankPattern" | "alphaPattern">;
  const scale = ({ r, loraAlpha, useRslora, rankPattern, alphaPattern }: Scale) =>
    JSON.stringify({ r, loraAlpha, useRslora, rankPattern, alphaPattern });
  if (own === undefined || scale(own) !== scale(config))
    throw new LlamaGymError(
      "WEIGHTS_MISMATCH",
      `${folder} is an adapter with ${scale(config)}, but this model trains ${own === undefined ? "all weights" : `one with ${scale(own)}`}.`,
    );
}

async function loadAdapterOrClose(model: CausalLM, folder: string): Promise<CausalLM> {
  try {
    return await loadAdapter(model, folder);
  } catch (error) {
    await model.close();
    throw error;
  }
}

async function isAdapterOnly(folder: string): Promise<boolean> {
  return (await isAdapterFolder(folder)) && !(await fs.exists(fs.join(folder, "config.json")));
}

/**
 * Returns the base model of a folder with only an adapter, and other names as they are. @throws
 * FILE_CORRUPT, MODEL_UNSUPPORTED, FILE_NOT_FOUND
 */
export async function getBaseModel(name: string): Promise<string> {
  return (await isAdapterOnly(name)) ? (await findBaseModel(name, await readAdapterConfig(name))).name : name;
}

/**
 * Resolves an adapter's base model: a hub id, or a path relative to the working directory or the
 * adapter's folder.
 */
async function findBaseModel(
  folder: string,
  { baseModelNameOrPath: name, revision }: Pick<AdapterConfig, "baseModelNameOrPath" | "revision">,
): Promise<{ name: string; revision: string | undefined }> {
  if (name === null) {
    throw new LlamaGymError(
      "FILE_NOT_FOUND",
      `The adapter ${folder} does not name its base model. Open the base model and add the adapter to it.`,
    );
  }
  const siblingPath = fs.resolve(fs.dirname(folder), name);
  const resolvedName = !(await fs.exists(name)) && (await fs.exists(siblingPath)) ? siblingPath : name;
  return { name: resolvedName, revision: revision ?? undefined };
}
