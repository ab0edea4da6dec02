import type { DecodeStage } from "./tokenization/decoder.js";

/** Decodes token ids one at a time; bytes of an unfinished character and other uncertain text are held back. */
export class StreamDecoder {
  /** `read` gives an id's token, undefined for one to leave out. */
  constructor(
    private readonly stages: readonly DecodeStage[],
    private readonly getToken: (id: number) => string | undefined,
  ) {}

  /** Takes the next id and gives the text that is now certain, often one word, sometimes nothing. */
  push(id: number): string {
    const token = this.getToken(id);
    return token === undefined ? "" : this.runStages([token], 0);
  }

  /** Gives the text that was held back. The decoder then starts a new text. */
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
