import { stat } from "node:fs/promises";

import { LlamaGymError } from "../errors.js";
import { openGguf } from "../files/gguf/index.js";
import { readTokenizerFolder } from "./tokenizer-folder.js";
import { Tokenizer } from "./tokenizer.js";

/** Finds a model's tokenizer and loads it. */
export const AutoTokenizer = {
  /**
   * The tokenizer of a model folder or a GGUF file.
   * Throws FILE_NOT_FOUND, FILE_CORRUPT and TOKENIZER_UNSUPPORTED.
   */
  async fromPretrained(path: string): Promise<Tokenizer> {
    const status = await stat(path).catch(() => null);
    if (!status) throw new LlamaGymError("FILE_NOT_FOUND", `${path} does not exist. Check the path.`);
    return status.isDirectory() ? new Tokenizer(await readTokenizerFolder(path), path) : fromGguf(path);
  },
};

async function fromGguf(path: string): Promise<Tokenizer> {
  const model = await openGguf(path);
  try {
    return new Tokenizer({ ...model.tokenizer(), generationConfig: model.generationConfig }, path);
  } finally {
    await model.close();
  }
}
