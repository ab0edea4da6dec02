import type { JsonObject } from "../json.js";
import type { GgufFields } from "./fields.js";

/** Tokens that end a turn of a chat in the published templates. */
const turnEnds = new Set(["<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endofturn|>", "<|eom_id|>"]);

/** GGUF's recommended sampling settings (general.sampling.*) and their names in generation_config.json. */
const samplingKeys: readonly (readonly [string, string])[] = [
  ["temp", "temperature"],
  ["top_k", "top_k"],
  ["top_p", "top_p"],
  ["min_p", "min_p"],
  ["penalty_repeat", "repetition_penalty"],
];

/**
 * Transformers' `generation_config.json` for a GGUF file. A reply ends at the file's end-of-text and end-of-turn tokens
 * and at those turn ends that its chat template writes.
 */
export function generationConfig(fields: GgufFields): JsonObject {
  const config: JsonObject = {};
  const bos = fields.index("tokenizer.ggml.bos_token_id");
  const padding = fields.index("tokenizer.ggml.padding_token_id");
  if (bos !== undefined) config.bos_token_id = bos;
  if (padding !== undefined) config.pad_token_id = padding;
  const ends = endTokens(fields);
  if (ends.length > 0) config.eos_token_id = ends.length === 1 ? ends[0] : ends;
  for (const [key, name] of samplingKeys) {
    const value = fields.raw(`general.sampling.${key}`);
    if (typeof value === "number" && Number.isFinite(value)) config[name] = Number(value.toPrecision(7));
  }
  return config;
}

function endTokens(fields: GgufFields): number[] {
  const ids = ["eos", "eot", "eom"].map((name) => fields.index(`tokenizer.ggml.${name}_token_id`));
  const template = fields.string("tokenizer.chat_template") ?? "";
  const tokens = fields.raw("tokenizer.ggml.tokens");
  if (Array.isArray(tokens)) {
    for (const [id, token] of tokens.entries()) {
      if (typeof token === "string" && turnEnds.has(token) && template.includes(token)) ids.push(id);
    }
  }
  return [...new Set(ids.filter((id) => id !== undefined))];
}
