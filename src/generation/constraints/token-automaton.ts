import { LlamaGymError } from "../../core/errors.js";
import { type ByteAutomaton, DEAD_STATE } from "./automaton/byte-automaton.js";
import { computeCompletionCosts } from "./completion-costs.js";
import type { TextStart, Vocabulary } from "./vocabulary.js";
import { walkTokens } from "./walk-tokens.js";

/** The tokens that lead on from a state. */
export interface AllowedNext {
  /** In ascending order. */
  readonly tokens: Int32Array;
  /** For each of them how many more tokens the reply needs behind it, at most. */
  readonly costs: Float32Array;
  readonly maxCost: number;
}

/** Tokens in the lists that are kept, 8 bytes each; beyond, the lists that were not used for longest are made anew. */
const MAX_CACHED_TOKENS = 4_000_000;

/**
 * The texts of an automaton as tokens of a vocabulary: which tokens may follow in a state, and where they lead. The states are
 * its own, over bytes, one for the start of a fresh text, and one behind the end token. The tokens of a state are
 * found when they are asked for, and kept.
 */
export class TokenAutomaton {
  /** [states]: how many tokens a reply still needs, at most; Infinity where no tokens lead to its end. */
  private readonly costs: Float64Array;
  private readonly cachedNext = new Map<number, AllowedNext>();
  private cachedTokenCount = 0;
  /** The start, where a token may write something else than later. */
  private readonly startState: number;
  private readonly endState: number;

  /** Throws INVALID_ARGUMENT where a text begins another and the model has no end token. */
  constructor(
    private readonly byteAutomaton: ByteAutomaton,
    private readonly vocabulary: Vocabulary,
  ) {
    this.startState = byteAutomaton.stateCount;
    this.endState = byteAutomaton.stateCount + 1;
    this.costs = computeCompletionCosts(byteAutomaton, vocabulary.tokenBytes.trie, this.endingCosts());
  }

  get name(): string {
    return this.byteAutomaton.name;
  }

  /**
   * The state before the first token, and how many tokens a reply needs at most. Throws INVALID_ARGUMENT when the model's tokens
   * can write none of the texts.
   */
  start(textStart: TextStart): { readonly state: number; readonly cost: number } {
    const { byteAutomaton, costs, vocabulary } = this;
    const state = vocabulary.firstTokenBytes(textStart) === vocabulary.tokenBytes ? 0 : this.startState;
    const cost =
      state === 0 || byteAutomaton.accepting[0] === 1 ? costs[0] : 1 + minimum(this.allowedNext(state).costs);
    if (cost === Infinity) throw this.invalid("allows no text that this model's tokens can write");
    return { state, cost };
  }

  /** The state behind tokens; undefined where they lead nowhere. */
  follow(start: number, tokens: readonly number[]): number | undefined {
    let state = start;
    for (const token of tokens) {
      state = this.step(state, token);
      if (state === DEAD_STATE) return undefined;
    }
    return state;
  }

  /** The tokens that may follow in a state; none where the reply is over. */
  allowedNext(state: number): AllowedNext {
    const cached = this.cachedNext.get(state);
    const result = cached ?? this.computeAllowedNext(state);
    // A map keeps the order of insertion: its first are those that were not used for longest.
    this.cachedNext.delete(state);
    this.cachedNext.set(state, result);
    if (cached === undefined) this.cachedTokenCount += result.tokens.length;
    for (const [old, { tokens }] of this.cachedNext) {
      if (this.cachedTokenCount <= MAX_CACHED_TOKENS || old === state) break;
      this.cachedNext.delete(old);
      this.cachedTokenCount -= tokens.length;
    }
    return result;
  }

  /** Whether a reply is over in a state: nothing may follow, and it is one of the expression's texts. */
  isComplete(state: number): boolean {
    if (state === this.endState) return true;
    const byteState = this.toByteState(state);
    return this.byteAutomaton.accepting[byteState] === 1 && !this.byteAutomaton.canContinue(byteState);
  }

  private step(state: number, token: number): number {
    if (state === this.endState) return DEAD_STATE;
    const byteState = this.toByteState(state);
    if (token === this.vocabulary.endToken)
      return this.byteAutomaton.accepting[byteState] === 1 && this.byteAutomaton.canContinue(byteState)
        ? this.endState
        : DEAD_STATE;
    const writtenBytes = this.tokenBytesAt(state).bytes(token);
    return writtenBytes === undefined ? DEAD_STATE : this.byteAutomaton.walk(byteState, writtenBytes);
  }

  private computeAllowedNext(state: number): AllowedNext {
    const { byteAutomaton, costs, vocabulary } = this;
    const costByToken = new Float32Array(vocabulary.size).fill(Infinity);
    if (state !== this.endState) {
      const byteState = this.toByteState(state);
      const { trie, emptyTokens } = this.tokenBytesAt(state);
      walkTokens(byteAutomaton, trie, byteState, (token, to) => {
        costByToken[token] = costs[to];
      });
      for (const token of emptyTokens) costByToken[token] = costs[byteState];
      if (byteAutomaton.accepting[byteState] === 1 && byteAutomaton.canContinue(byteState))
        costByToken[vocabulary.endToken!] = 0;
    }
    return toAllowedNext(costByToken);
  }

  private toByteState(state: number): number {
    return state === this.startState ? 0 : state;
  }

  private tokenBytesAt(state: number) {
    return state === this.startState ? this.vocabulary.firstTokenBytes("fresh") : this.vocabulary.tokenBytes;
  }

  /** A reply ends by itself where nothing may follow, and elsewhere by the end token. */
  private endingCosts(): Float64Array {
    const { byteAutomaton, vocabulary } = this;
    return Float64Array.from(byteAutomaton.accepting, (accepting, state) => {
      if (accepting === 0) return Infinity;
      if (!byteAutomaton.canContinue(state)) return 0;
      if (vocabulary.endToken !== undefined) return 1;
      throw this.invalid(
        "allows texts that go on where another ends, and this model has no end token to tell them apart",
      );
    });
  }

  private invalid(problem: string): LlamaGymError {
    return new LlamaGymError("INVALID_ARGUMENT", `${this.name} ${problem}.`);
  }
}

function minimum(values: Float32Array): number {
  return values.reduce((min, value) => Math.min(min, value), Infinity);
}

/** The tokens with a finite cost. */
function toAllowedNext(costByToken: Float32Array): AllowedNext {
  let count = 0;
  let maxCost = 0;
  const tokens = new Int32Array(costByToken.length);
  const costs = new Float32Array(costByToken.length);
  for (let token = 0; token < costByToken.length; token++) {
    const cost = costByToken[token];
    if (cost === Infinity) continue;
    tokens[count] = token;
    costs[count++] = cost;
    maxCost = Math.max(maxCost, cost);
  }
  return { tokens: tokens.slice(0, count), costs: costs.slice(0, count), maxCost };
}
