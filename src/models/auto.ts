import { stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { LlamaGymError } from "../core/errors.js";
import { isAdapterFolder, readAdapter, resolveModel, type ResolveOptions } from "./files/index.js";
import { CausalLM, type ModelOptions } from "./causal-lm.js";
import { EMBEDDED_MODEL, getEmbeddedModelPath } from "./embedded-model.js";
import { loadAdapter } from "./save-model.js";

export type { ResolveOptions };

export interface OpenOptions extends ModelOptions, ResolveOptions {}

/** A model that was opened, and where its files lie on this machine. */
export interface LoadedModel {
  readonly model: CausalLM;
  /** The path or hub id that it was opened by; of an adapter, its base model's. */
  readonly name: string;
  /** The model's folder or GGUF file. */
  readonly path: string;
  /** The adapter's folder, where a folder with an adapter alone was opened. */
  readonly adapterPath: string | undefined;
}

/**
 * Opens a model by its path or hub id, or the one that comes with the package ("embedded"); a folder that holds an adapter alone opens the adapter on the model that it names.
 * Throws what `resolveModel`, `CausalLM.open` and `loadAdapter` throw.
 */
export async function openPretrained(idOrPath: string, options: OpenOptions = {}): Promise<LoadedModel> {
  const { path, kind } = await resolveModel(idOrPath === EMBEDDED_MODEL ? getEmbeddedModelPath() : idOrPath, options);
  if (kind === "gguf" || !(await isAdapterOnly(path))) {
    return { model: await CausalLM.open(path, options), name: idOrPath, path, adapterPath: undefined };
  }
  const base = await findBaseModel(path);
  const { revision: _, file: __, ...others } = options;
  const opened = await openPretrained(base.name, { ...others, revision: base.revision });
  if (opened.adapterPath !== undefined) {
    await opened.model.close();
    throw new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `${path} is an adapter on an adapter; merge the first one, then open this.`,
    );
  }
  return { ...opened, model: await loadAdapterOrClose(opened.model, path), adapterPath: path };
}

/** The model with an adapter from a folder or the hub; throws what `resolveModel` and `loadAdapter` throw. */
export async function openAdapter(model: CausalLM, idOrPath: string, options: ResolveOptions = {}): Promise<CausalLM> {
  const { path } = await resolveModel(idOrPath, options);
  return loadAdapter(model, path);
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
  return (await isAdapterFolder(folder)) && !(await exists(join(folder, "config.json")));
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** The model that an adapter names: a hub id, or a path as it is or as seen from the adapter's folder. */
async function findBaseModel(folder: string): Promise<{ name: string; revision: string | undefined }> {
  const { baseModelNameOrPath: name, revision } = (await readAdapter(folder)).config;
  if (name === null) {
    throw new LlamaGymError(
      "FILE_NOT_FOUND",
      `${folder} is an adapter that does not name its base model. Open the base model, then the adapter on it.`,
    );
  }
  const siblingPath = resolve(dirname(folder), name);
  const resolvedName = !(await exists(name)) && (await exists(siblingPath)) ? siblingPath : name;
  return { name: resolvedName, revision: revision ?? undefined };
}
