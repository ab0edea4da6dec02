/**
 * What a tokenizer is made of, as parsed files. A model folder, a hub snapshot and a GGUF file all give these; they
 * are kept as they are, so that saving writes back what was read.
 */
export interface TokenizerFiles {
  /** tokenizer.json */
  readonly tokenizerJson: unknown;
  /** tokenizer_config.json, in the old dialect (added_tokens_decoder, chat_template) or Transformers 5's. */
  readonly tokenizerConfig?: unknown;
  /** special_tokens_map.json, which older folders have. */
  readonly specialTokensMap?: unknown;
  /** generation_config.json: its eos_token_id lists every token that ends a reply. */
  readonly generationConfig?: unknown;
  /**
   * chat_template.jinja, or chat_template.json's template. Templates by name where there are several, with the main
   * one under "default". It takes precedence over the one in tokenizer_config.json.
   */
  readonly chatTemplate?: string | Readonly<Record<string, string>>;
}
