import { drawToken, type TokenDistribution } from "../kernels/sampling.js";

/** Distributions that are kept at most. */
const KEPT = 16_384;

/** A reply on its way. */
export interface ReplyDraft {
  readonly tokens: number[];
  readonly logProbs: number[];
  /** Of the states before the tokens. */
  readonly values: number[];
}

/** What is known of a place in a reply. */
interface Known {
  readonly distribution: TokenDistribution;
  readonly value: number;
}

/**
 * What the model was found to say after prompts that came before. In small tasks the same observation comes back often: its
 * next reply is then drawn from the known distributions, with the same random numbers and so with the same tokens.
 */
export class ReplyMemory {
  private readonly known = new Map<string, Known>();
  /** What is being computed, by the prompt and the tokens before it. */
  private readonly running = new Map<string, Promise<unknown>>();

  clear(): void {
    this.known.clear();
  }

  /** Keeps what a token was drawn from, and its state's value, behind a prompt and the reply's tokens before it. */
  learn(prompt: string, tokens: readonly number[], distribution: TokenDistribution, value: number): void {
    if (this.known.size >= KEPT) this.clear();
    this.known.set(keyOf(prompt, tokens), { distribution, value });
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
      const known = this.known.get(key);
      const running = this.running.get(key);
      if (known !== undefined) {
        const { token, logProb } = drawToken(known.distribution, random());
        draft.tokens.push(token);
        draft.logProbs.push(logProb);
        draft.values.push(known.value);
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
