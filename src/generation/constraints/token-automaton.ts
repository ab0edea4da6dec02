import { LlamaGymError } from "../../core/errors.js";
import { decodeUtf8, encodeUtf8 } from "../../core/bytes.js";
import { LruCache } from "../../core/lru-cache.js";
import { runSteps } from "../../core/steps.js";
import { type ByteAutomaton, DEAD_STATE } from "./automaton/byte-automaton.js";
import { CompletionCosts } from "./completion-costs.js";
import { walkTokens } from "./token-trie.js";
import type { TextStart, Vocabulary } from "./vocabulary.js";

/** The tokens that can follow a state. */
export interface AllowedNext {
  /** In ascending order. */
  readonly tokens: Int32Array;
  /** For each token, an upper bound of the tokens still needed after it. */
  readonly costs: Float32Array;
  readonly maxCost: number;
  /** Whether tokens that are not the tokenizer's usual ones were left out. */
  readonly isUsual: boolean;
}

/**
 * Branches beyond which a state's tokens are not compared with the usual ones, as in free text.
 */
const MAX_BRANCHES = 32;
/** Bytes that are tokenized to find the first usual token. */
const MAX_FORCED_BYTES = 64;

/**
 * Maximum number of tokens in cached lists, 8 bytes each; the least recently used lists are dropped
 * first.
 */
const MAX_CACHED_TOKENS = 4_000_000;
/** Maximum number of cached lists with unusual tokens. */
const MAX_CACHED_NEXT = 64;

/** The start of a text, where a token may have other bytes than later. */
const START_STATE = -2;
/** The state after the end token. */
const END_STATE = -3;

/**
 * The texts of a byte automaton as tokens of a vocabulary: the tokens that may follow a state, and
 * the states they lead to. The states are the states of the byte automaton, one for the start of a
 * text, and one after the end token. The tokens allowed in a state are computed on first use and
 * cached.
 */
export class TokenAutomaton {
  private readonly costs: CompletionCosts;
  private readonly cachedNext = new Map<number, AllowedNext>();
  private readonly allNext = new LruCache<AllowedNext>(MAX_CACHED_NEXT);
  private cachedTokenCount = 0;

  /** @throws INVALID_ARGUMENT if one text is a prefix of another and the model has no end token. */
  constructor(
    private readonly byteAutomaton: ByteAutomaton,
    private readonly vocabulary: Vocabulary,
  ) {
    if (vocabulary.endToken === undefined) this.checkPrefixFree();
    this.costs = new CompletionCosts(byteAutomaton, vocabulary.tokenBytes.trie, (state) =>
      byteAutomaton.canContinue(state) ? 1 : 0,
    );
  }

  get name(): string {
    return this.byteAutomaton.name;
  }

  /** Whether the automaton has grown too large to be kept for other texts. */
  get isLarge(): boolean {
    return this.byteAutomaton.isLarge;
  }

  /** Lists the texts as `ByteAutomaton.listTexts` does. */
  listTexts(maxTexts: number): readonly string[] | undefined {
    return this.byteAutomaton.listTexts(maxTexts);
  }

  /** Returns whether the model's tokens can write a text that begins with another one. */
  allowsStart(text: string): boolean {
    const state = this.byteAutomaton.walk(0, encodeUtf8(text));
    return state !== DEAD_STATE && this.costs.of(state) < Infinity;
  }

  /** Returns whether a completion after a token starts a text or continues one. */
  textStartAfter(previousToken: number | undefined): TextStart {
    return this.vocabulary.textStartAfter(previousToken);
  }

  /**
   * Returns the state before the first token, and an upper bound of the tokens needed from it.
   * @throws INVALID_ARGUMENT if the model's tokens can write none of the texts.
   */
  start(textStart: TextStart): { readonly state: number; readonly cost: number } {
    const { byteAutomaton, costs, vocabulary } = this;
    const state = vocabulary.firstTokenBytes(textStart) === vocabulary.tokenBytes ? 0 : START_STATE;
    const cost =
      state === 0 || byteAutomaton.accepting[0] === 1 ? costs.of(0) : 1 + minimum(this.allNextTokens(state).costs);
    if (cost === Infinity) throw this.invalid("matches no text that this model's tokens can write");
    return { state, cost };
  }

  /** Returns the state after a token; undefined if the token is not allowed. */
  next(state: number, token: number): number | undefined {
    if (state === END_STATE) return undefined;
    const byteState = this.toByteState(state);
    if (token === this.vocabulary.endToken) return this.needsEndToken(byteState) ? END_STATE : undefined;
    const bytes = this.tokenBytesAt(state).bytes(token);
    const next = bytes === undefined ? DEAD_STATE : this.byteAutomaton.walk(byteState, bytes);
    return next === DEAD_STATE ? undefined : next;
  }

  /**
   * Tokenizes a text that starts in a state, with the end token where it needs one; undefined if
   * the text does not match.
   */
  encode(
    text: string,
    { state, previousToken }: { readonly state: number; readonly previousToken: number | undefined },
  ): readonly number[] | undefined {
    const { endToken } = this.vocabulary;
    const bytes = encodeUtf8(text);
    const tokens: number[] = [];
    let current: number | undefined = state;
    let usual = this.vocabulary.encode(text, previousToken);
    for (let at = 0; at < bytes.length;) {
      const allowed = this.allowedNext(current).tokens;
      if (!allowed.includes(usual[0])) {
        // The usual tokens of the whole text differ from those of its parts.
        const rest = bytes.subarray(at);
        const token = this.longestPrefix(allowed, rest, current);
        if (token === undefined) return undefined;
        const length = this.tokenBytesAt(current).bytes(token)!.length;
        usual = [token, ...this.vocabulary.encode(decodeUtf8(rest.subarray(length)), token)];
      }
      const token = usual.shift()!;
      at += this.tokenBytesAt(current).bytes(token)!.length;
      tokens.push(token);
      current = this.next(current, token);
      if (current === undefined) return undefined;
    }
    if (this.isComplete(current)) return tokens;
    return endToken !== undefined && this.next(current, endToken) !== undefined ? [...tokens, endToken] : undefined;
  }

  /** Returns the tokens allowed in a state; none where the completion is complete. */
  allowedNext(state: number): AllowedNext {
    const cached = this.cachedNext.get(state);
    const result = cached ?? this.computeAllowedNext(state);
    // A Map iterates in insertion order: the first entries are the least recently used.
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

  /** Returns whether a state is the end of a complete text that nothing may follow. */
  isComplete(state: number): boolean {
    if (state === END_STATE) return true;
    const byteState = this.toByteState(state);
    return this.byteAutomaton.accepting[byteState] === 1 && !this.byteAutomaton.canContinue(byteState);
  }

  /** Returns the tokens that can follow a state, the unusual ones as well. */
  allNextTokens(state: number): AllowedNext {
    return this.allNext.getOrCreate(String(state), () => toAllowedNext(this.computeCosts(state), false));
  }

  private computeAllowedNext(state: number): AllowedNext {
    const costs = this.computeCosts(state);
    const isUsual = state !== END_STATE && this.dropUnusualTokens(state, costs);
    return toAllowedNext(costs, isUsual);
  }

  /** Returns the cost of each token after a state; Infinity for those that cannot follow. */
  private computeCosts(state: number): Float32Array {
    const { byteAutomaton, costs, vocabulary } = this;
    const costByToken = new Float32Array(vocabulary.size).fill(Infinity);
    if (state !== END_STATE) {
      const byteState = this.toByteState(state);
      const { trie, emptyTokens } = this.tokenBytesAt(state);
      walkTokens(byteAutomaton, trie, byteState, (token, to) => {
        costByToken[token] = costs.of(to);
      });
      for (const token of emptyTokens) costByToken[token] = costs.of(byteState);
      if (this.needsEndToken(byteState)) costByToken[vocabulary.endToken!] = 0;
    }
    return costByToken;
  }

  /**
   * Where text is forced, keeps the tokens that the tokenizer would write, and those that reach
   * beyond it: other splits would be decisions that change nothing. Returns whether any was
   * dropped.
   */
  private dropUnusualTokens(state: number, costs: Float32Array): boolean {
    const { byteAutomaton } = this;
    const branches = byteAutomaton.nextBytes(this.toByteState(state), MAX_BRANCHES) ?? [];
    const tokenBytes = this.tokenBytesAt(state);
    const kept = new Set<number>();
    const dropped = new Set<number>();
    for (const byte of branches) {
      const { forced, isWhole } = this.forcedText(this.toByteState(state), byte);
      const usual = forced.length === 1 ? undefined : this.usualToken(forced, state);
      if (usual === undefined || costs[usual] === Infinity) continue;
      for (const token of tokenBytes.trie.tokensFrom(byte)) {
        if (costs[token] === Infinity) continue;
        const reachesBeyond = isWhole && tokenBytes.bytes(token)!.length > forced.length;
        (token === usual || reachesBeyond ? kept : dropped).add(token);
      }
    }
    for (const token of dropped) if (!kept.has(token)) costs[token] = Infinity;
    return dropped.size > 0;
  }

  /** Returns a byte with those that must follow it, and whether these are all of them. */
  private forcedText(from: number, byte: number): { readonly forced: readonly number[]; readonly isWhole: boolean } {
    const { byteAutomaton } = this;
    const forced = [byte];
    let state = byteAutomaton.step(from, byte);
    while (byteAutomaton.accepting[state] === 0) {
      const next = byteAutomaton.nextBytes(state, 1);
      if (next?.length !== 1) break;
      if (forced.length === MAX_FORCED_BYTES) return { forced, isWhole: false };
      forced.push(next[0]);
      state = byteAutomaton.step(state, next[0]);
    }
    return { forced, isWhole: true };
  }

  /** Returns the first token of bytes; undefined if they are no text or it is not a part of it. */
  private usualToken(bytes: readonly number[], state: number): number | undefined {
    const text = decodeLeadingText(Uint8Array.from(bytes));
    if (text === "") return undefined;
    const token = this.vocabulary.firstToken(text, state === START_STATE ? "start" : "continuation");
    const own = this.tokenBytesAt(state).bytes(token);
    return own !== undefined && own.every((byte, i) => byte === bytes[i]) ? token : undefined;
  }

  /** Returns the longest of tokens that bytes begin with. */
  private longestPrefix(tokens: Int32Array, bytes: Uint8Array, state: number): number | undefined {
    let longest: number | undefined;
    let maxLength = 0;
    for (const token of tokens) {
      const own = this.tokenBytesAt(state).bytes(token);
      if (own === undefined || own.length <= maxLength || !own.every((byte, i) => byte === bytes[i])) continue;
      longest = token;
      maxLength = own.length;
    }
    return longest;
  }

  private needsEndToken(byteState: number): boolean {
    return this.byteAutomaton.accepting[byteState] === 1 && this.byteAutomaton.canContinue(byteState);
  }

  private toByteState(state: number): number {
    return state === START_STATE ? 0 : state;
  }

  private tokenBytesAt(state: number) {
    return state === START_STATE ? this.vocabulary.firstTokenBytes("start") : this.vocabulary.tokenBytes;
  }

  /** Without an end token, a completion ends by itself where nothing may follow. */
  private checkPrefixFree(): void {
    const { byteAutomaton } = this;
    runSteps(byteAutomaton.explore());
    for (let state = 0; state < byteAutomaton.stateCount; state++) {
      if (byteAutomaton.accepting[state] === 1 && byteAutomaton.canContinue(state))
        throw this.invalid("matches texts that begin with another match, and this model has no end token to end those");
    }
  }

  private invalid(problem: string): LlamaGymError {
    return new LlamaGymError("INVALID_ARGUMENT", `${this.name} ${problem}.`);
  }
}

function minimum(values: Float32Array): number {
  return values.reduce((min, value) => Math.min(min, value), Infinity);
}

/** The tokens with a finite cost. */
function toAllowedNext(costByToken: Float32Array, isUsual: boolean): AllowedNext {
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
  return { tokens: tokens.slice(0, count), costs: costs.slice(0, count), maxCost, isUsual };
}

/** Decodes bytes up to the last complete character; "" if they do not begin with one. */
function decodeLeadingText(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes);
  const end = text.indexOf("\ufffd");
  return end < 0 ? text : text.slice(0, end);
}
