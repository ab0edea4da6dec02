import { fs } from "#platform";
import { ggufArchitectures } from "../architectures/index.js";
import { LlamaGymError } from "../../core/errors.js";
import { openGguf, openWeightFolder, type WeightFile } from "../files/index.js";
import { readJson, readJsonIfExists } from "../../core/files/json-file.js";
import type { JsonObject } from "../../core/json.js";

/**
 * A model's configuration and its tensors under Hugging Face names, from a folder or a GGUF file.
 */
export interface ModelSource {
  /** The folder or GGUF file. */
  readonly path: string;
  readonly config: JsonObject;
  readonly generationConfig: JsonObject;
  readonly weights: WeightFile;
  close(): Promise<void>;
}

/**
 * Opens a model folder or a GGUF file. @throws FILE_NOT_FOUND, FILE_CORRUPT or FORMAT_UNSUPPORTED.
 */
export async function openModelSource(path: string): Promise<ModelSource> {
  const info = await fs.stat(path).catch(() => undefined);
  if (info === undefined)
    throw new LlamaGymError("FILE_NOT_FOUND", `There is no model folder or GGUF file at ${path}.`);
  if (!info.isFolder) return openGguf(path, ggufArchitectures);
  const config = await readJson(fs.join(path, "config.json"));
  const generationConfig = (await readJsonIfExists(fs.join(path, "generation_config.json"))) ?? {};
  const weights = await openWeightFolder(path);
  return { path, config, generationConfig, weights, close: () => weights.close() };
}

/** Returns the path of a model's configuration, for messages. */
export function getConfigPath({ path }: ModelSource): string {
  return path.endsWith(".gguf") ? path : fs.join(path, "config.json");
}
