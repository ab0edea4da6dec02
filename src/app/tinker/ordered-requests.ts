import { RequestError } from "../server/request-error.js";

/** Requests that may wait for one before them. */
const MAX_WAITING = 4096;

/**
 * Runs the requests of a model in the order of their numbers, whatever the order in which they
 * arrive. Each number runs once.
 */
export class OrderedRequests {
  private next = 1;
  private last = 0;
  private isRunning = false;
  private idle: Promise<void> = Promise.resolve();
  private end: Error | undefined;
  private readonly waiting = new Map<
    number,
    { readonly run: () => Promise<void>; readonly reject: (error: Error) => void }
  >();

  /** Returns the number of a request that has none: the one after all others. */
  number(seqId: number | null | undefined): number {
    return seqId ?? this.last + 1;
  }

  /** Whether a number was submitted before. */
  has(seqId: number): boolean {
    return seqId < this.next || this.waiting.has(seqId);
  }

  /** Checks a new number. @throws RequestError 400 for a number that cannot run. */
  check(seqId: number): void {
    if (!Number.isSafeInteger(seqId) || seqId < 1)
      throw new RequestError(400, `seq_id must be an integer >= 1, got ${seqId}.`);
    if (seqId >= this.next + MAX_WAITING)
      throw new RequestError(
        400,
        `seq_id ${seqId} is more than ${MAX_WAITING} ahead of ${this.next}, which has not arrived.`,
      );
  }

  /** Runs work once all numbers before have run. */
  async run<Result>(seqId: number, work: () => Promise<Result>): Promise<Result> {
    if (this.end !== undefined) throw this.end;
    this.last = Math.max(this.last, seqId);
    return new Promise<Result>((resolve, reject) => {
      this.waiting.set(seqId, { run: () => work().then(resolve, reject), reject });
      this.drain();
    });
  }

  /** Refuses all requests that have not begun; resolves when the running one is done. */
  async close(reason: Error): Promise<void> {
    this.end = reason;
    for (const { reject } of this.waiting.values()) reject(reason);
    this.waiting.clear();
    await this.idle;
  }

  private drain(): void {
    if (this.isRunning) return;
    this.isRunning = true;
    this.idle = this.runWaiting();
  }

  private async runWaiting(): Promise<void> {
    for (let job = this.waiting.get(this.next); job !== undefined; job = this.waiting.get(this.next)) {
      this.waiting.delete(this.next);
      this.next++;
      await job.run();
    }
    this.isRunning = false;
  }
}
