/**
 * Parsed files of a tokenizer from a model folder, hub snapshot or GGUF file, kept unchanged so
 * that saving writes back what was read.
 */
export interface TokenizerFiles {
  /** tokenizer.json */
  readonly tokenizerJson: unknown;
  /**
   * tokenizer_config.json, in the old dialect (added_tokens_decoder, chat_template) or Transformers
   * 5's.
   */
  readonly tokenizerConfig?: unknown;
  /** special_tokens_map.json of older folders. */
  readonly specialTokensMap?: unknown;
  /** added_tokens.json of older folders: ids by content. */
  readonly addedTokens?: unknown;
  /** generation_config.json, whose eos_token_id lists all end-of-sequence tokens. */
  readonly generationConfig?: unknown;
  /**
   * chat_template.jinja, or chat_template.json's template; several by name with the main one under
   * "default". Takes precedence over tokenizer_config.json's.
   */
  readonly chatTemplate?: string | Readonly<Record<string, string>>;
}
