import { LlamaGymError } from "../../core/errors.js";
import type { TokenConstraint } from "../sampling/sample-request.js";
import type { TokenAutomaton } from "./token-automaton.js";
import type { TextStart } from "./vocabulary.js";

export interface PatternConstraintOptions {
  /** Whether the reply is a text of its own (the default), or goes on with its prompt's. */
  readonly start?: TextStart;
  /** The reply has at most this many tokens; each is chosen so that it can still end. Unlimited by default. */
  readonly maxNewTokens?: number;
}

const NO_TOKENS = new Int32Array(0);

/** Lists that were cut to what still fits and are kept, so that equal ones are one. */
const MAX_CACHED_LISTS = 256;

/**
 * Holds a reply to the texts of an expression. The tokens allowed next are those behind which the reply can still become such a
 * text, within `maxTokens`; the end token is one of them where the text so far is such a text and may go on. Where it may
 * not go on, nothing is allowed and the reply is over. Every way of cutting a text into tokens is allowed. Among the allowed
 * tokens the model's own probabilities decide, so a reply's probability is the product, over its tokens, of
 * p(token) / sum of p over the tokens allowed there.
 */
export class PatternConstraint implements TokenConstraint {
  private readonly start: number;
  private readonly maxNewTokens: number;
  /** By the state and the tokens that may follow. */
  private readonly affordableTokens = new Map<string, Int32Array>();

  /** Throws INVALID_ARGUMENT when no text of the expression fits into `maxTokens`. */
  constructor(
    private readonly automaton: TokenAutomaton,
    { start = "fresh", maxNewTokens = Infinity }: PatternConstraintOptions = {},
  ) {
    const { state, cost } = automaton.start(start);
    if (cost > maxNewTokens) {
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        `${automaton.name} needs room for ${cost} tokens, and this reply has room for ${maxNewTokens}. Raise maxNewTokens.`,
      );
    }
    this.start = state;
    this.maxNewTokens = maxNewTokens;
  }

  allowedTokens(tokens: readonly number[]): Int32Array {
    const state = this.automaton.follow(this.start, tokens);
    if (state === undefined) return NO_TOKENS;
    const { tokens: possible, costs, maxCost } = this.automaton.allowedNext(state);
    const remaining = this.maxNewTokens - tokens.length - 1;
    if (maxCost <= remaining) return possible;
    const key = `${state};${remaining}`;
    const affordable = this.affordableTokens.get(key) ?? possible.filter((_, i) => costs[i] <= remaining);
    if (this.affordableTokens.size >= MAX_CACHED_LISTS) this.affordableTokens.clear();
    this.affordableTokens.set(key, affordable);
    return affordable;
  }

  /** Whether these tokens are a whole reply: one of the texts, and its end token where it could go on. */
  isComplete(tokens: readonly number[]): boolean {
    const state = this.automaton.follow(this.start, tokens);
    return state !== undefined && this.automaton.isComplete(state);
  }
}
