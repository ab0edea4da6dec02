import type { JsonObject, JsonValue } from "../../../core/json.js";
import type { GgufFields } from "./gguf-fields.js";

/** End-of-turn tokens of published chat templates. */
const endOfTurnTokens = new Set([
  "<|im_end|>",
  "<|eot_id|>",
  "<|end|>",
  "<end_of_turn>",
  "<|endofturn|>",
  "<|eom_id|>",
]);

/**
 * GGUF's recommended sampling settings (general.sampling.*) and their generation_config.json names.
 */
const samplingKeys: readonly (readonly [string, string])[] = [
  ["temp", "temperature"],
  ["top_k", "top_k"],
  ["top_p", "top_p"],
  ["min_p", "min_p"],
  ["penalty_repeat", "repetition_penalty"],
];

/**
 * Builds Transformers' `generation_config.json` for a GGUF file. Completions end at the file's
 * end-of-text and end-of-turn tokens and at end-of-turn tokens that its chat template contains.
 */
export function buildGenerationConfig(fields: GgufFields): JsonObject {
  const config: Record<string, JsonValue> = {};
  const bos = fields.index("tokenizer.ggml.bos_token_id");
  const padding = fields.index("tokenizer.ggml.padding_token_id");
  if (bos !== undefined) config.bos_token_id = bos;
  if (padding !== undefined) config.pad_token_id = padding;
  const eosTokens = findEosTokens(fields);
  if (eosTokens.length > 0) config.eos_token_id = eosTokens.length === 1 ? eosTokens[0] : eosTokens;
  for (const [key, name] of samplingKeys) {
    const value = fields.raw(`general.sampling.${key}`);
    if (typeof value === "number" && Number.isFinite(value)) config[name] = Number(value.toPrecision(7));
  }
  return config;
}

function findEosTokens(fields: GgufFields): number[] {
  const ids = ["eos", "eot", "eom"].map((name) => fields.index(`tokenizer.ggml.${name}_token_id`));
  const template = fields.string("tokenizer.chat_template") ?? "";
  const tokens = fields.raw("tokenizer.ggml.tokens");
  if (Array.isArray(tokens)) {
    for (const [id, token] of tokens.entries()) {
      if (typeof token === "string" && endOfTurnTokens.has(token) && template.includes(token)) ids.push(id);
    }
  }
  return [...new Set(ids.filter((id) => id !== undefined))];
}
