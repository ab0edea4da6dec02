/** Lets completions run at the same time as each other, but not during an update. */
export class UpdateGate {
  private readonly running = new Set<Promise<unknown>>();
  private opened: PromiseWithResolversResult | undefined;

  /** Runs a completion once no update is running. */
  async run<Result>(complete: () => Promise<Result>): Promise<Result> {
    while (this.opened !== undefined) await this.opened.promise;
    const completion = complete();
    this.running.add(completion);
    try {
      return await completion;
    } finally {
      this.running.delete(completion);
    }
  }

  /** Holds new completions back and waits for the running ones. */
  async close(): Promise<void> {
    if (this.opened === undefined) {
      let open = () => {};
      const promise = new Promise<void>((resolve) => (open = resolve));
      this.opened = { promise, open };
    }
    await Promise.allSettled(this.running);
  }

  open(): void {
    this.opened?.open();
    this.opened = undefined;
  }
}

interface PromiseWithResolversResult {
  readonly promise: Promise<void>;
  readonly open: () => void;
}
