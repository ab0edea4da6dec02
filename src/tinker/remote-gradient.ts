import type { WeightedSequences } from "./linear-loss.js";

/**
 * The gradient of the next optimizer step, as weighted log-probabilities. Some of it waits to be
 * sent, and some is at the service already, which has no request to drop it: what a refused step
 * left there is subtracted.
 */
export class RemoteGradient {
  private waiting: WeightedSequences[] = [];
  private atService: WeightedSequences[] = [];
  private refused: WeightedSequences[] = [];

  /** Whether the last gradient was dropped although the service had it. */
  get wasRefused(): boolean {
    return this.refused.length > 0;
  }

  get isEmpty(): boolean {
    return this.waiting.length === 0 && this.atService.length === 0;
  }

  /** Drops the gradient. */
  drop(): void {
    this.waiting = [];
    this.refused = [...this.refused, ...this.atService];
    this.atService = [];
  }

  /** Adds what waits for the step, or what the service has computed. */
  add(weighted: WeightedSequences, { isAtService }: { readonly isAtService: boolean }): void {
    (isAtService ? this.atService : this.waiting).push(weighted);
  }

  /** Returns what has to be sent before the step, and begins the next gradient. */
  take(): readonly WeightedSequences[] {
    const subtracted = this.refused.map((each) => ({ ...each, weights: each.weights.map((weight) => -weight) }));
    const sent = [...this.waiting, ...subtracted];
    this.clear();
    return sent;
  }

  /** Begins anew at a service that has no gradient. */
  clear(): void {
    this.waiting = [];
    this.atService = [];
    this.refused = [];
  }
}
