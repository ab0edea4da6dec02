import { checkOptions } from "../../core/settings.js";
import { EMBEDDED_MODEL, getEmbeddedModelPath } from "../embedded-model.js";
import { readGgufTokenizer } from "../files/gguf/index.js";
import { type ResolveOptions, resolveModel, resolveOptionNames } from "../files/hub/index.js";
import { readTokenizerFolder } from "./tokenizer-folder.js";
import { Tokenizer, type TokenizerOptions } from "./tokenizer.js";

/** Loads a model's tokenizer. */
export const AutoTokenizer = {
  /**
   * Loads the tokenizer of a folder, a GGUF file, a hub id, whose missing files are downloaded, or
   * "embedded".
   * @throws FILE_NOT_FOUND, FILE_CORRUPT, TOKENIZER_UNSUPPORTED, and what `resolveModel` throws.
   */
  async fromPretrained(idOrPath: string, given: ResolveOptions & TokenizerOptions = {}): Promise<Tokenizer> {
    checkOptions("AutoTokenizer.fromPretrained", given, { ...resolveOptionNames, splitSpecialTokens: Boolean });
    const { splitSpecialTokens, ...options } = given;
    const tokenizerOptions = { splitSpecialTokens };
    const { kind, path } = await resolveModel(idOrPath === EMBEDDED_MODEL ? getEmbeddedModelPath() : idOrPath, options);
    if (kind === "folder") return new Tokenizer(await readTokenizerFolder(path), idOrPath, tokenizerOptions);
    return new Tokenizer(await readGgufTokenizer(path), idOrPath, tokenizerOptions);
  },
};
