/** Exit status after Ctrl-C: 128 plus the number of SIGINT, as in shells. */
export const SIGINT_EXIT_CODE = 130;

/** Turns the first Ctrl-C or SIGTERM into an abort signal and exits immediately at the second. */
export class InterruptHandler {
  private readonly command = new AbortController();
  private task: AbortController | undefined;

  /** `onInterrupt` is called when the command's signal is aborted. */
  constructor(private readonly onInterrupt: () => void) {
    process.on("SIGINT", this.interrupt);
    process.on("SIGTERM", this.interrupt);
  }

  /** Aborted by an interrupt outside `runTask`. */
  get signal(): AbortSignal {
    return this.command.signal;
  }

  /** Leaves signals to others: the command has ended. */
  close(): void {
    process.off("SIGINT", this.interrupt);
    process.off("SIGTERM", this.interrupt);
  }

  /** Runs a task with its own signal, which an interrupt aborts instead of the command's. */
  async runTask(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.task = new AbortController();
    try {
      await run(this.task.signal);
    } finally {
      this.task = undefined;
    }
  }

  readonly interrupt = (): void => {
    const { signal } = this.task ?? this.command;
    if (signal.aborted) process.exit(SIGINT_EXIT_CODE);
    if (this.task !== undefined) return this.task.abort();
    this.onInterrupt();
    this.command.abort();
  };
}
