import { decodeUtf8 } from "../../../core/bytes.js";
import { invalidArgument, type LlamaGymError } from "../../../core/errors.js";
import { runSteps, type Steps } from "../../../core/steps.js";
import { EMPTY_TEXT, type RegexExpression, NO_MATCH } from "../regex/expression.js";
import { Nfa } from "./nfa.js";
import { EMPTY_STACK, RuleStacks } from "./rule-stacks.js";
import { ShortestLengths, type UsableBytes } from "./shortest-lengths.js";

/** Larger automata take more than a few seconds to build. */
const MAX_STATES = 30_000;
/**
 * Maximum number of visits to states and edges of the nondeterministic automaton, for the same
 * reason.
 */
const MAX_VISITS = 5_000_000;
/** States that are built at once, in a few milliseconds. */
const STATES_PER_STEP = 100;
/** States beyond which a lazy automaton is large: some hundred megabytes. */
const LARGE_STATES = 100_000;
/**
 * Maximum positions in the nondeterministic automaton that a text may lead to; more come from
 * options that hardly differ.
 */
const MAX_POSITIONS = 20_000;

/** Maximum depth to which values are nested in themselves. */
const MAX_DEPTH = 32;

/** Maximum length of a listed text; listing is recursive. */
const MAX_LISTED_BYTES = 1000;

/** The state of texts that are not a prefix of a match. */
export const DEAD_STATE = -1;
/** A transition that was not computed yet. */
const UNKNOWN = -2;

const ALL_BYTES: UsableBytes = new Uint8Array(256).fill(1);

/**
 * A deterministic automaton over the bytes of UTF-8 text, whose states are built when a text first
 * leads to them (by subset construction, Rabin and Scott 1959, over positions with stacks of
 * rules). Every state leads to an accepting one, so a text that has not reached DEAD_STATE can
 * still be completed to a match.
 */
export class ByteAutomaton {
  /** [256]: class of each byte; all states treat the bytes of a class alike. */
  readonly byteClass: Uint8Array;
  /** The first byte of each class. */
  readonly representativeBytes: readonly number[];
  /** [states]: 1 if the text up to the state is a match. State 0 is the start. */
  readonly accepting: number[] = [];
  private readonly transitions: Int32Array[] = [];
  /** [states]: the positions, sorted. */
  private readonly positions: Float64Array[] = [];
  private readonly stateByKey = new Map<string, number>();
  private visits = 0;

  private constructor(
    readonly name: string,
    private readonly nfa: Nfa,
    private readonly stacks: RuleStacks,
    private readonly lengths: ShortestLengths,
  ) {
    ({ byteClass: this.byteClass, representativeBytes: this.representativeBytes } = byteClasses(nfa));
  }

  /**
   * Builds the automaton of an expression: all its states, or with `isLazy` only those that texts
   * lead to.
   * @param name of the pattern in messages.
   * @throws INVALID_ARGUMENT for an expression that matches no text but the empty one, or needs too
   * many states.
   */
  static *build(expression: RegexExpression, name: string, { isLazy = false } = {}): Steps<ByteAutomaton> {
    if (expression === NO_MATCH) throw invalidArgument(`${name} matches no text.`);
    if (expression === EMPTY_TEXT) throw invalidArgument(`${name} matches only the empty text.`);
    const nfa = yield* Nfa.build(expression, name);
    const stacks = new RuleStacks(nfa, MAX_DEPTH);
    const lengths = yield* ShortestLengths.build(nfa, stacks, ALL_BYTES);
    const automaton = new ByteAutomaton(name, nfa, stacks, lengths);
    const start = automaton.toState([[nfa.starts[0], EMPTY_STACK]]);
    if (start === DEAD_STATE) throw invalidArgument(`${name} matches no text, or none that an automaton can express.`);
    if (!isLazy) yield* automaton.explore();
    return automaton;
  }

  /** Number of states that were built. */
  get stateCount(): number {
    return this.accepting.length;
  }

  /**
   * Whether the states that texts led to take much memory, so that the automaton should not be kept
   * for other texts.
   */
  get isLarge(): boolean {
    return this.stateCount > LARGE_STATES;
  }

  /** Returns the state after a byte. */
  step(state: number, byte: number): number {
    const group = this.byteClass[byte];
    const next = this.transitions[state][group];
    return next === UNKNOWN ? (this.transitions[state][group] = this.computeStep(state, byte)) : next;
  }

  /** Returns the state after bytes; DEAD_STATE if no match continues with them. */
  walk(state: number, bytes: Iterable<number>): number {
    let current = state;
    for (const byte of bytes) {
      if (current === DEAD_STATE) break;
      current = this.step(current, byte);
    }
    return current;
  }

  /**
   * Lists the texts if there are at most `maxTexts`, none longer than MAX_LISTED_BYTES; otherwise
   * returns undefined.
   */
  listTexts(maxTexts: number): string[] | undefined {
    const texts: string[] = [];
    const bytes: number[] = [];
    const visit = (state: number): boolean => {
      if (this.accepting[state] === 1 && texts.push(decodeUtf8(Uint8Array.from(bytes))) > maxTexts) return false;
      if (bytes.length === MAX_LISTED_BYTES) return !this.canContinue(state);
      for (let byte = 0; byte < 256; byte++) {
        const next = this.step(state, byte);
        if (next === DEAD_STATE) continue;
        bytes.push(byte);
        if (!visit(next)) return false;
        bytes.pop();
      }
      return true;
    };
    return visit(0) ? texts : undefined;
  }

  /** Returns the bytes that can follow a state, in order; undefined for more than `maxBytes`. */
  nextBytes(state: number, maxBytes: number): number[] | undefined {
    const { representativeBytes } = this;
    const bytes: number[] = [];
    for (const [i, first] of representativeBytes.entries()) {
      const end = representativeBytes[i + 1] ?? 256;
      if (this.step(state, first) === DEAD_STATE) continue;
      if (bytes.length + end - first > maxBytes) return undefined;
      for (let byte = first; byte < end; byte++) bytes.push(byte);
    }
    return bytes;
  }

  canContinue(state: number): boolean {
    return this.positions[state].length > this.accepting[state];
  }

  /** Builds all states. @throws INVALID_ARGUMENT for too many. */
  *explore(): Steps<void> {
    for (let state = 0; state < this.stateCount; state++) {
      if (this.stateCount > MAX_STATES || this.visits > MAX_VISITS)
        throw this.invalid(
          `is too large: its automaton needs more than ${MAX_STATES} states or too many steps to build. Reduce its repetitions or lengths`,
        );
      if (state % STATES_PER_STEP === STATES_PER_STEP - 1) yield;
      for (const byte of this.representativeBytes) this.step(state, byte);
    }
  }

  /**
   * Returns a function that finds the first byte of the shortest text of usable bytes from a state
   * to an accepting one, the smallest if there are several; undefined if some state has none.
   */
  shortestTexts(usable: UsableBytes): ((state: number) => number) | undefined {
    const { nfa, stacks } = this;
    const isUsable = nfa.byteEdges.every((edges) =>
      edges.every(({ range }) => usable.subarray(range[0], range[1] + 1).every((each) => each === 1)),
    );
    const lengths = isUsable ? this.lengths : runSteps(ShortestLengths.build(nfa, stacks, usable));
    if (this.lengths.exceeds(lengths)) return undefined;
    return (state) => {
      let min = Infinity;
      let first = 256;
      for (const key of this.positions[state]) {
        const [position, stack] = this.splitKey(key);
        const length = lengths.of(position, stack);
        if (length > min) continue;
        const byte = lengths.firstByte(position, stack);
        first = length < min ? byte : Math.min(first, byte);
        min = length;
      }
      return first;
    };
  }

  private computeStep(state: number, byte: number): number {
    const { byteEdges } = this.nfa;
    const targets: [number, number][] = [];
    for (const key of this.positions[state]) {
      const [position, stack] = this.splitKey(key);
      for (const { range, to } of byteEdges[position]) {
        if (byte >= range[0] && byte <= range[1]) targets.push([to, stack]);
      }
    }
    return targets.length === 0 ? DEAD_STATE : this.toState(targets);
  }

  /**
   * Returns the state of positions and all that follow them without a byte, as far as they lead to
   * a match.
   */
  private toState(open: [position: number, stack: number][]): number {
    const { nfa, stacks, lengths } = this;
    const [end] = nfa.ends;
    const seen = new Set<number>();
    const kept: number[] = [];
    while (open.length > 0) {
      const [position, stack] = open.pop()!;
      const key = stack * nfa.stateCount + position;
      this.visits++;
      if (seen.has(key) || lengths.of(position, stack) === Infinity) continue;
      seen.add(key);
      if (seen.size > MAX_POSITIONS)
        throw this.invalid("is too large: too many of its options begin alike. Merge them");
      if (position === end || nfa.byteEdges[position].length > 0) kept.push(key);
      if (stack !== EMPTY_STACK && position === nfa.ends[nfa.ruleOf[position]])
        open.push([stacks.returnState(stack), stacks.parent(stack)]);
      for (const to of nfa.epsilonEdges[position]) open.push([to, stack]);
      for (const edge of nfa.ruleEdges[position]) {
        const inner = stacks.push(stack, position, edge);
        if (inner !== undefined) open.push([nfa.starts[edge.rule], inner]);
      }
    }
    return kept.length === 0 ? DEAD_STATE : this.internState(Float64Array.from(kept).sort());
  }

  private internState(positions: Float64Array): number {
    const key = positions.join(",");
    let state = this.stateByKey.get(key);
    if (state === undefined) {
      state = this.positions.push(positions) - 1;
      this.stateByKey.set(key, state);
      this.transitions.push(new Int32Array(this.representativeBytes.length).fill(UNKNOWN));
      this.accepting.push(positions.includes(this.nfa.ends[0]) ? 1 : 0);
    }
    return state;
  }

  private splitKey(key: number): [position: number, stack: number] {
    const stack = Math.floor(key / this.nfa.stateCount);
    return [key - stack * this.nfa.stateCount, stack];
  }

  private invalid(problem: string): LlamaGymError {
    return invalidArgument(`${this.name} ${problem}.`);
  }
}

function byteClasses({ byteEdges }: Nfa): { byteClass: Uint8Array; representativeBytes: number[] } {
  const starts = new Uint8Array(257);
  starts[0] = 1;
  for (const edges of byteEdges) {
    for (const { range } of edges) {
      starts[range[0]] = 1;
      starts[range[1] + 1] = 1;
    }
  }
  const byteClass = new Uint8Array(256);
  const representativeBytes: number[] = [];
  for (let byte = 0; byte < 256; byte++) {
    if (starts[byte] === 1) representativeBytes.push(byte);
    byteClass[byte] = representativeBytes.length - 1;
  }
  return { byteClass, representativeBytes };
}
