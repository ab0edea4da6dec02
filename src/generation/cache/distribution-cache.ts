import { sampleFromDistribution, type TokenDistribution } from "../../engine/runtime/kernels/sampling.js";

/** Distributions that are kept at most. */
const MAX_CACHED = 16_384;

/** A reply on its way. */
export interface PartialCompletion {
  readonly tokens: number[];
  readonly logProbs: number[];
  /** Of the states before the tokens. */
  readonly values: number[];
}

/** What is known of a place in a reply. */
interface CachedDistribution {
  readonly distribution: TokenDistribution;
  readonly value: number;
}

/**
 * What the model was found to say after prompts that came before. In small tasks the same observation comes back often: its
 * next reply is then drawn from the known distributions, with the same random numbers and so with the same tokens.
 */
export class DistributionCache {
  private readonly cache = new Map<string, CachedDistribution>();
  /** What is being computed, by the prompt and the tokens before it. */
  private readonly pending = new Map<string, Promise<unknown>>();

  clear(): void {
    this.cache.clear();
  }

  /** Keeps what a token was drawn from, and its state's value, behind a prompt and the reply's tokens before it. */
  add(prompt: string, tokens: readonly number[], distribution: TokenDistribution, value: number): void {
    if (this.cache.size >= MAX_CACHED) this.clear();
    this.cache.set(cacheKey(prompt, tokens), { distribution, value });
  }

  /**
   * Completes a reply: draws its tokens from what is known until `isOver`, and has `compute` draw the rest. What others are
   * computing behind the same tokens is waited for.
   */
  async complete(
    prompt: string,
    draft: PartialCompletion,
    { random, isFinished, compute }: { random: () => number; isFinished: () => boolean; compute: () => Promise<void> },
  ): Promise<void> {
    while (!isFinished()) {
      const key = cacheKey(prompt, draft.tokens);
      const cached = this.cache.get(key);
      const pending = this.pending.get(key);
      if (cached !== undefined) {
        const { token, logProb } = sampleFromDistribution(cached.distribution, random());
        draft.tokens.push(token);
        draft.logProbs.push(logProb);
        draft.values.push(cached.value);
      } else if (pending !== undefined) {
        // Its error is told to the one who asked for it.
        await pending.catch(() => {});
      } else {
        const computation = compute();
        this.pending.set(key, computation);
        return computation.finally(() => this.pending.delete(key));
      }
    }
  }
}

function cacheKey(prompt: string, tokens: readonly number[]): string {
  return tokens.length === 0 ? prompt : `${prompt};${tokens.join()}`;
}
