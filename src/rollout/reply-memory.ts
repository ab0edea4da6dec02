import { drawToken, type TokenDistribution } from "../kernels/sampling.js";

/** Distributions that are kept at most. */
const KEPT = 16_384;

/** A reply on its way. */
export interface ReplyDraft {
  readonly tokens: number[];
  readonly logProbs: number[];
}

/**
 * What the model was found to say after prompts that came before. In small tasks the same observation comes back often: its
 * next reply is then drawn from the known distributions, with the same random numbers and so with the same tokens.
 */
export class ReplyMemory {
  private readonly distributions = new Map<string, TokenDistribution>();
  /** What is being computed, by the prompt and the tokens before it. */
  private readonly running = new Map<string, Promise<unknown>>();

  clear(): void {
    this.distributions.clear();
  }

  /** Keeps what a token was drawn from, behind a prompt and the reply's tokens before it. */
  learn(prompt: string, tokens: readonly number[], distribution: TokenDistribution): void {
    if (this.distributions.size >= KEPT) this.clear();
    this.distributions.set(keyOf(prompt, tokens), distribution);
  }

  /**
   * Completes a reply: draws its tokens from what is known until `isOver`, and has `compute` draw the rest. What others are
   * computing behind the same tokens is waited for.
   */
  async complete(
    prompt: string,
    draft: ReplyDraft,
    { random, isOver, compute }: { random: () => number; isOver: () => boolean; compute: () => Promise<void> },
  ): Promise<void> {
    while (!isOver()) {
      const key = keyOf(prompt, draft.tokens);
      const distribution = this.distributions.get(key);
      const running = this.running.get(key);
      if (distribution !== undefined) {
        const { token, logProb } = drawToken(distribution, random());
        draft.tokens.push(token);
        draft.logProbs.push(logProb);
      } else if (running !== undefined) {
        // Its error is told to the one who asked for it.
        await running.catch(() => {});
      } else {
        const computing = compute();
        this.running.set(key, computing);
        return computing.finally(() => this.running.delete(key));
      }
    }
  }
}

function keyOf(prompt: string, tokens: readonly number[]): string {
  return tokens.length === 0 ? prompt : `${prompt};${tokens.join()}`;
}
