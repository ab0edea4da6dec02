/** Calls the first Ctrl-C (or SIGTERM) a wish to end, which the signal tells, and the second one an end at once. */
export class InterruptHandler {
  private readonly controller = new AbortController();

  /** `message` is said at the first one. */
  constructor(private readonly message: string) {
    process.on("SIGINT", this.onSignal);
    process.on("SIGTERM", this.onSignal);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get isInterrupted(): boolean {
    return this.signal.aborted;
  }

  /** Leaves both to Node.js again. */
  release(): void {
    process.off("SIGINT", this.onSignal);
    process.off("SIGTERM", this.onSignal);
  }

  private readonly onSignal = (): void => {
    if (this.isInterrupted) process.exit(SIGINT_EXIT_CODE);
    this.controller.abort();
    process.stderr.write(`\n${this.message}\n`);
  };
}

/** The exit status of a command that Ctrl-C ended: 128 and the signal's number, as shells count. */
export const SIGINT_EXIT_CODE = 130;
