import type { DecodeStage } from "./tokenization/decoder.js";

/**
 * Decodes token ids incrementally; incomplete characters and other text that later tokens may
 * change are buffered.
 */
export class StreamDecoder {
  /** @param read returns an id's token, or undefined to omit it */
  constructor(
    private readonly stages: readonly DecodeStage[],
    private readonly getToken: (id: number) => string | undefined,
  ) {}

  /** Adds an id and returns the text that is now final, often a word, sometimes nothing. */
  push(id: number): string {
    const token = this.getToken(id);
    return token === undefined ? "" : this.runStages([token], 0);
  }

  /** Returns the buffered text and resets the decoder. */
  end(): string {
    let text = "";
    this.stages.forEach((stage, index) => {
      text += this.runStages(stage.end(), index + 1);
    });
    return text;
  }

  private runStages(pieces: string[], from: number): string {
    let current = pieces;
    for (let i = from; i < this.stages.length; i++) {
      const stage = this.stages[i];
      current = current.flatMap((piece) => stage.push(piece));
    }
    return current.join("");
  }
}
