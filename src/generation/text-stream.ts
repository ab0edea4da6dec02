/** A queue of text pieces with one writer and one reader. */
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

  /** Yields pieces until the end; pieces written between two reads are joined. */
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
