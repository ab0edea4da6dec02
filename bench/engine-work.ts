/** What the engine bench asks of a side. Peers' counterpart: peers/engine.py. */
export type EngineWork =
  /**
   * One LoRA training step: forward, mean cross-entropy of the next tokens, backward, AdamW. Rows
   * of `tokens` inputs whose first `shared` are the same in all rows; logits and loss at the last
   * `last` positions, 0 for all. Count: rows x tokens.
   */
  | {
      work: "train";
      rows: number;
      tokens: number;
      shared: number;
      last: number;
      /**
       * Backward products in 8 bits; then values.gradient_cosine compares its gradient with the
       * float32 one.
       */
      backward?: "int8";
      /** Bits of our frozen weights; peers keep the format that they were started with. */
      quantize?: 8 | 4;
    }
  /** One forward that fills a cache and gives the last position's logits. Count: rows x tokens. */
  | { work: "prefill"; rows: number; tokens: number }
  /**
   * `new_tokens` tokens for each row, sampled after a prompt whose keys and values stand. Count:
   * rows x new_tokens.
   */
  | {
      work: "decode";
      rows: number;
      prompt: number[];
      new_tokens: number;
      temperature: number;
      top_p: number;
      /** Bits of our weights; peers keep the format that they were started with. */
      quantize?: 8 | 4;
    }
  /** From the files to the first token, greedily chosen. Count: 1. */
  | { work: "start"; prompt: number[]; source: "folder" | "gguf" }
  /**
   * The best time of float32 matrix products over shapes [rows, inner, columns]. Count:
   * floating-point operations.
   */
  | { work: "sgemm"; shapes: [number, number, number][] };

/**
 * Token ids [rows][tokens] that both sides make alike; the first `shared` positions of every row
 * are the same.
 */
export function benchTokenIds(rows: number, tokens: number, shared: number, vocabulary: number): number[][] {
  return Array.from({ length: rows }, (_, row) =>
    Array.from(
      { length: tokens },
      (_, position) => ((position < shared ? 0 : row) * 7919 + position * 31 + 17) % vocabulary,
    ),
  );
}
