/** Pieces that one side writes as they come and the other reads with `for await`. */
export class TextStream {
  private readonly pieces: string[] = [];
  private wake: (() => void) | undefined;
  private hasEnded = false;

  write(piece: string): void {
    if (piece === "") return;
    this.pieces.push(piece);
    this.wake?.();
  }

  end(): void {
    this.hasEnded = true;
    this.wake?.();
  }

  /** The pieces, until the end; what came together is given together. */
  async *read(): AsyncGenerator<string, void> {
    for (;;) {
      if (this.pieces.length > 0) yield this.pieces.splice(0).join("");
      else if (this.hasEnded) return;
      else {
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
        this.wake = undefined;
      }
    }
  }
}
