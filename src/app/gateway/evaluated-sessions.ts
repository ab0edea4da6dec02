import type { EpisodeSummary } from "../../rl/rollout/index.js";
import type { GatewaySession, SessionRecord } from "./session.js";

/**
 * The sessions of an evaluation that other processes open. The first that are opened count: the
 * first that end would be the short ones.
 */
export class EvaluatedSessions {
  /** Resolves when all counted sessions have ended. */
  readonly ended: Promise<void>;
  private readonly summaries: EpisodeSummary[] = [];
  private numEnded = 0;
  private resolve!: () => void;
  private reject!: (reason: unknown) => void;

  /** @param firstIndex index of the first counted session */
  constructor(
    private readonly firstIndex: number,
    private readonly episodes: number,
    private readonly onProgress?: (finished: number) => void,
  ) {
    this.ended = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /** Returns of the counted sessions; those without a completion have none. */
  get returns(): readonly number[] {
    return this.summaries.map((summary) => summary.return);
  }

  add({ index }: GatewaySession, record: SessionRecord | undefined): void {
    if (index - this.firstIndex >= this.episodes) return;
    this.numEnded++;
    if (record !== undefined) this.summaries.push(record.summary);
    this.onProgress?.(this.numEnded);
    if (this.numEnded === this.episodes) this.resolve();
  }

  /** Makes `ended` reject in place of waiting. */
  readonly abort = (reason: unknown): void => this.reject(reason);
}
