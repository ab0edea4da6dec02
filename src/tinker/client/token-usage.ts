import { LlamaGymError } from "../../core/errors.js";

/** Tokens that a service has computed, by what they cost. */
export interface TokenCounts {
  /** Prompt tokens of samples and scores. */
  readonly prefilled: number;
  readonly sampled: number;
  /** Tokens of forward passes without a gradient. */
  readonly scored: number;
  /** Tokens of forward and backward passes. */
  readonly trained: number;
}

/** Counts the tokens that a service computes, and limits them. */
export class TokenUsage {
  private current: TokenCounts = { prefilled: 0, sampled: 0, scored: 0, trained: 0 };

  constructor(private readonly maxTokens = Infinity) {}

  get counts(): TokenCounts {
    return this.current;
  }

  /** The counts by the names of a run's metrics. */
  get metrics(): Readonly<Record<string, number>> {
    const { prefilled, sampled, scored, trained } = this.current;
    return {
      "service/tokens_prefilled": prefilled,
      "service/tokens_sampled": sampled,
      "service/tokens_scored": scored,
      "service/tokens_trained": trained,
    };
  }

  get total(): number {
    return Object.values(this.current).reduce((sum, value) => sum + value, 0);
  }

  add(counts: Partial<TokenCounts>): void {
    const { prefilled = 0, sampled = 0, scored = 0, trained = 0 } = counts;
    const { current } = this;
    this.current = {
      prefilled: current.prefilled + prefilled,
      sampled: current.sampled + sampled,
      scored: current.scored + scored,
      trained: current.trained + trained,
    };
  }

  /** Continues the counts of a run that is resumed. */
  restore(counts: TokenCounts): void {
    this.current = counts;
  }

  /** Whether the limit is reached. */
  get isExhausted(): boolean {
    return this.total >= this.maxTokens;
  }

  /**
   * Checks the limit before new weights are sampled from; what was sampled is still trained.
   * @throws INVALID_STATE
   */
  check(): void {
    if (!this.isExhausted) return;
    throw new LlamaGymError(
      "INVALID_STATE",
      `The service has computed ${this.total.toLocaleString("en-US")} tokens for this run, and \`maxServiceTokens\` allows ` +
        `${this.maxTokens.toLocaleString("en-US")}. Resume the run with a higher limit.`,
    );
  }
}
