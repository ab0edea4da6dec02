import { LlamaGymError } from "../../core/errors.js";
import { LruCache } from "../../core/lru-cache.js";
import type { CompiledConstraint, ConstraintCursor } from "./compiled-constraint.js";
import type { TokenAutomaton } from "./token-automaton.js";
import type { TextStart } from "./vocabulary.js";

/** Options of `LanguageModel.compilePattern`. */
export interface PatternConstraintOptions {
  /**
   * Whether the completion starts a text or continues the prompt's. By default it continues the
   * text of a `previousToken` that is not special.
   */
  readonly start?: TextStart;
  /** Last token of the prompt; texts are tokenized as they follow it. */
  readonly previousToken?: number;
  /**
   * Maximum number of tokens of the completion; each is chosen so that it can still end in time.
   * Unlimited by default.
   */
  readonly maxNewTokens?: number;
}

const NO_TOKENS = new Int32Array(0);

/** Maximum number of cached lists that were filtered by length; equal lists are one object. */
const MAX_CACHED_LISTS = 256;

/**
 * Constrains a completion to the texts of a pattern. The allowed tokens are those after which the
 * text can still match within `maxNewTokens`; the end token is one of them where the text so far
 * matches and could continue. A match that cannot continue ends the completion. Where the pattern
 * forces text, its tokens are the tokenizer's; elsewhere all tokenizations of a text are allowed.
 * The probability of a completion is the product, over its tokens, of p(token) / sum of p over the
 * allowed tokens.
 */
export class PatternConstraint implements CompiledConstraint {
  readonly maxLength: number;
  private readonly startState: number;
  private readonly previousToken: number | undefined;
  /** By the state and the number of tokens that may follow. */
  private readonly affordableTokens = new LruCache<Int32Array>(MAX_CACHED_LISTS);

  /** @throws INVALID_ARGUMENT if no text of the pattern fits into `maxNewTokens`. */
  constructor(
    private readonly automaton: TokenAutomaton,
    { start, previousToken, maxNewTokens = Infinity }: PatternConstraintOptions = {},
  ) {
    const { state, cost } = automaton.start(start ?? automaton.textStartAfter(previousToken));
    if (cost > maxNewTokens)
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        `${automaton.name} needs up to ${cost} tokens, but the completion is limited to ${maxNewTokens}. Raise maxNewTokens.`,
      );
    this.startState = state;
    this.previousToken = previousToken;
    this.maxLength = maxNewTokens;
  }

  cursor(): ConstraintCursor {
    return new PatternCursor(this.automaton, this.startState, (state, length) => this.allowedTokens(state, length));
  }

  encode(text: string): readonly number[] | undefined {
    return this.automaton.encode(text, { state: this.startState, previousToken: this.previousToken });
  }

  /** Whether the automaton has grown too large to be kept for other completions. */
  get isLarge(): boolean {
    return this.automaton.isLarge;
  }

  /** Returns whether some allowed completion begins with a text. */
  allowsStart(text: string): boolean {
    return this.automaton.allowsStart(text);
  }

  /** Lists the texts as `ByteAutomaton.listTexts` does. */
  listTexts(maxTexts: number): readonly string[] | undefined {
    return this.automaton.listTexts(maxTexts);
  }

  /** Returns the tokens allowed in a state, after `length` tokens. */
  private allowedTokens(state: number | undefined, length: number): Int32Array {
    if (state === undefined) return NO_TOKENS;
    const next = this.automaton.allowedNext(state);
    const remaining = this.maxLength - length - 1;
    if (next.maxCost <= remaining) return next.tokens;
    // Near the limit, other splits may need fewer tokens than the usual one.
    const { tokens, costs } = next.isUsual ? this.automaton.allNextTokens(state) : next;
    return this.affordableTokens.getOrCreate(`${state};${remaining}`, () =>
      tokens.filter((_, i) => costs[i] <= remaining),
    );
  }
}

class PatternCursor implements ConstraintCursor {
  private length = 0;
  private cachedTokens: Int32Array | undefined;

  constructor(
    private readonly automaton: TokenAutomaton,
    /** Undefined after a token that is not allowed. */
    private state: number | undefined,
    private readonly findAllowedTokens: (state: number | undefined, length: number) => Int32Array,
  ) {}

  get allowedTokens(): Int32Array {
    return (this.cachedTokens ??= this.findAllowedTokens(this.state, this.length));
  }

  get isComplete(): boolean {
    return this.state !== undefined && this.automaton.isComplete(this.state);
  }

  advance(token: number): void {
    if (this.state !== undefined) this.state = this.automaton.next(this.state, token);
    this.length++;
    this.cachedTokens = undefined;
  }
}
