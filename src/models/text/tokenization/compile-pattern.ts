import { SplitPreTokenizer } from "@huggingface/tokenizers";

import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError, isObject } from "./tokenizer-json.js";

/**
 * A tokenizer.json pattern ({ "String": ... } or { "Regex": ... } in Oniguruma's dialect) as a global JavaScript
 * expression. The dialect is translated by @huggingface/tokenizers.
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

/** A string as an expression that matches just it. */
export function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
