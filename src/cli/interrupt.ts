/** Calls the first Ctrl-C (or SIGTERM) a wish to end, which the signal tells, and the second one an end at once. */
export class Interrupt {
  private readonly controller = new AbortController();

  /** `message` is said at the first one. */
  constructor(private readonly message: string) {
    process.on("SIGINT", this.stop);
    process.on("SIGTERM", this.stop);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get hasCome(): boolean {
    return this.signal.aborted;
  }

  /** Leaves both to Node.js again. */
  release(): void {
    process.off("SIGINT", this.stop);
    process.off("SIGTERM", this.stop);
  }

  private readonly stop = (): void => {
    if (this.hasCome) process.exit(INTERRUPTED);
    this.controller.abort();
    process.stderr.write(`\n${this.message}\n`);
  };
}

/** The exit status of a command that Ctrl-C ended: 128 and the signal's number, as shells count. */
export const INTERRUPTED = 130;
