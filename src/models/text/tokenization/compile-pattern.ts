import { SplitPreTokenizer } from "@huggingface/tokenizers";

import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError, isObject } from "./tokenizer-json.js";

/**
 * Compiles a tokenizer.json pattern ({ "String": ... } or { "Regex": ... } in Oniguruma's dialect,
 * translated by @huggingface/tokenizers) to a global regular expression.
 */
export function compilePattern(pattern: unknown): RegExp {
  if (!isObject(pattern)) throw corruptFileError("tokenizer.json: a pattern must be an object with String or Regex.");
  if (typeof pattern.String === "string") return new RegExp(escapeRegExp(pattern.String), "gu");
  if (typeof pattern.Regex !== "string") throw corruptFileError("tokenizer.json: a pattern must have String or Regex.");
  try {
    const { pattern: expression } = new SplitPreTokenizer({
      type: "Split",
      pattern: { Regex: pattern.Regex },
      behavior: "Isolated",
    });
    if (expression) return expression;
  } catch (cause) {
    throw new LlamaGymError(
      "TOKENIZER_UNSUPPORTED",
      `The pattern ${JSON.stringify(pattern.Regex)} in tokenizer.json has no JavaScript form (${String(cause)}).`,
      { cause },
    );
  }
  throw new LlamaGymError(
    "TOKENIZER_UNSUPPORTED",
    `The pattern ${JSON.stringify(pattern.Regex)} in tokenizer.json is not supported.`,
  );
}

/** Returns an expression that matches a string literally. */
export function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
