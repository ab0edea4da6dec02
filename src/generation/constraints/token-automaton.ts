import { LlamaGymError } from "../../errors.js";
import { type ByteAutomaton, DEAD } from "./automaton/byte-automaton.js";
import { completionCosts } from "./completion-costs.js";
import type { TextStart, Vocabulary } from "./vocabulary.js";
import { walkTokens } from "./walk-tokens.js";

/** The tokens that lead on from a state. */
export interface TokenSteps {
  /** In ascending order. */
  readonly tokens: Int32Array;
  /** For each of them how many more tokens the reply needs behind it, at most. */
  readonly costs: Float32Array;
  readonly largestCost: number;
}

/** Tokens in the lists that are kept, 8 bytes each; beyond, the lists that were not used for longest are made anew. */
const MOST_KEPT = 4_000_000;

/**
 * The texts of an automaton as tokens of a vocabulary: which tokens may follow in a state, and where they lead. The states are
 * its own, over bytes, one for the start of a fresh text, and one behind the end token. The tokens of a state are
 * found when they are asked for, and kept.
 */
export class TokenAutomaton {
  /** [states]: how many tokens a reply still needs, at most; Infinity where no tokens lead to its end. */
  private readonly costs: Float64Array;
  private readonly kept = new Map<number, TokenSteps>();
  private keptTokens = 0;
  /** The start, where a token may write something else than later. */
  private readonly fresh: number;
  private readonly ended: number;

  /** Throws INVALID_ARGUMENT where a text begins another and the model has no end token. */
  constructor(
    private readonly bytes: ByteAutomaton,
    private readonly vocabulary: Vocabulary,
  ) {
    this.fresh = bytes.states;
    this.ended = bytes.states + 1;
    this.costs = completionCosts(bytes, vocabulary.spelling.trie, this.endingCosts());
  }

  get name(): string {
    return this.bytes.name;
  }

  /**
   * The state before the first token, and how many tokens a reply needs at most. Throws INVALID_ARGUMENT when the model's tokens
   * can write none of the texts.
   */
  start(start: TextStart): { readonly state: number; readonly cost: number } {
    const { bytes, costs, vocabulary } = this;
    const state = vocabulary.firstSpelling(start) === vocabulary.spelling ? 0 : this.fresh;
    const cost = state === 0 || bytes.accepting[0] === 1 ? costs[0] : 1 + smallest(this.steps(state).costs);
    if (cost === Infinity) throw this.invalid("allows no text that this model's tokens can write");
    return { state, cost };
  }

  /** The state behind tokens; undefined where they lead nowhere. */
  follow(start: number, tokens: readonly number[]): number | undefined {
    let state = start;
    for (const token of tokens) {
      state = this.step(state, token);
      if (state === DEAD) return undefined;
    }
    return state;
  }

  /** The tokens that may follow in a state; none where the reply is over. */
  steps(state: number): TokenSteps {
    const known = this.kept.get(state);
    const steps = known ?? this.findSteps(state);
    // A map keeps the order of insertion: its first are those that were not used for longest.
    this.kept.delete(state);
    this.kept.set(state, steps);
    if (known === undefined) this.keptTokens += steps.tokens.length;
    for (const [old, { tokens }] of this.kept) {
      if (this.keptTokens <= MOST_KEPT || old === state) break;
      this.kept.delete(old);
      this.keptTokens -= tokens.length;
    }
    return steps;
  }

  /** Whether a reply is over in a state: nothing may follow, and it is one of the expression's texts. */
  isEnd(state: number): boolean {
    if (state === this.ended) return true;
    const at = this.byteState(state);
    return this.bytes.accepting[at] === 1 && !this.bytes.goesOn(at);
  }

  private step(state: number, token: number): number {
    if (state === this.ended) return DEAD;
    const at = this.byteState(state);
    if (token === this.vocabulary.endToken)
      return this.bytes.accepting[at] === 1 && this.bytes.goesOn(at) ? this.ended : DEAD;
    const bytes = this.spelling(state).bytes(token);
    return bytes === undefined ? DEAD : this.bytes.walk(at, bytes);
  }

  private findSteps(state: number): TokenSteps {
    const { bytes, costs, vocabulary } = this;
    const costOf = new Float32Array(vocabulary.size).fill(Infinity);
    if (state !== this.ended) {
      const at = this.byteState(state);
      const { trie, silent } = this.spelling(state);
      walkTokens(bytes, trie, at, (token, to) => {
        costOf[token] = costs[to];
      });
      for (const token of silent) costOf[token] = costs[at];
      if (bytes.accepting[at] === 1 && bytes.goesOn(at)) costOf[vocabulary.endToken!] = 0;
    }
    return listSteps(costOf);
  }

  private byteState(state: number): number {
    return state === this.fresh ? 0 : state;
  }

  private spelling(state: number) {
    return state === this.fresh ? this.vocabulary.firstSpelling("fresh") : this.vocabulary.spelling;
  }

  /** A reply ends by itself where nothing may follow, and elsewhere by the end token. */
  private endingCosts(): Float64Array {
    const { bytes, vocabulary } = this;
    return Float64Array.from(bytes.accepting, (accepting, state) => {
      if (accepting === 0) return Infinity;
      if (!bytes.goesOn(state)) return 0;
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

function smallest(values: Float32Array): number {
  return values.reduce((least, value) => Math.min(least, value), Infinity);
}

/** The tokens with a finite cost. */
function listSteps(costOf: Float32Array): TokenSteps {
  let count = 0;
  let largestCost = 0;
  const tokens = new Int32Array(costOf.length);
  const costs = new Float32Array(costOf.length);
  for (let token = 0; token < costOf.length; token++) {
    const cost = costOf[token];
    if (cost === Infinity) continue;
    tokens[count] = token;
    costs[count++] = cost;
    largestCost = Math.max(largestCost, cost);
  }
  return { tokens: tokens.slice(0, count), costs: costs.slice(0, count), largestCost };
}
