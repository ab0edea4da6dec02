import { decodeUtf8 } from "../../../core/bytes.js";
import { invalidArgument, type LlamaGymError } from "../../../core/errors.js";
import type { Steps } from "../../../core/steps.js";
import { EMPTY_TEXT, type Expression, NO_MATCH } from "../regex/expression.js";
import { Nfa } from "./nfa.js";

/** Larger automata take more than a few seconds to build. */
const MAX_STATES = 30_000;
/** Maximum number of visits to states and edges of the nondeterministic automaton, for the same reason. */
const MAX_VISITS = 5_000_000;
/** States that are built at once, in a few milliseconds. */
const STATES_PER_STEP = 100;

/** Maximum length of a listed text; listing is recursive. */
const MAX_LISTED_BYTES = 1000;

/** The state of texts that are not a prefix of a match. */
export const DEAD_STATE = -1;

/**
 * A deterministic automaton over the bytes of UTF-8 text. Every state leads to an accepting one, so a text that has not reached
 * DEAD_STATE can still be completed to a match.
 */
export class ByteAutomaton {
  private constructor(
    readonly name: string,
    /** [256]: class of each byte; all states treat the bytes of a class alike. */
    readonly byteClass: Uint8Array,
    /** The first byte of each class. */
    readonly representativeBytes: readonly number[],
    /** [states, classes]: the next state or DEAD_STATE. State 0 is the start. */
    readonly next: Int32Array,
    /** [states]: 1 if the text up to the state is a match. */
    readonly accepting: Uint8Array,
  ) {}

  /**
   * Builds the automaton of an expression.
   * @param name of the pattern in messages.
   * @throws INVALID_ARGUMENT for an expression that matches no text but the empty one, or needs too many states.
   */
  static *build(expression: Expression, name: string): Steps<ByteAutomaton> {
    if (expression === NO_MATCH) throw invalidArgument(`${name} matches no text.`);
    if (expression === EMPTY_TEXT) throw invalidArgument(`${name} matches only the empty text.`);
    const nfa = yield* Nfa.build(expression, name);
    const { byteClass, representativeBytes } = byteClasses(nfa);
    const { next, accepting } = yield* determinize(nfa, byteClass, representativeBytes.length, name);
    return new ByteAutomaton(name, byteClass, representativeBytes, next, accepting);
  }

  get stateCount(): number {
    return this.accepting.length;
  }

  /** Returns the state after a byte. */
  step(state: number, byte: number): number {
    return this.next[state * this.representativeBytes.length + this.byteClass[byte]];
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

  /** Lists the texts if there are at most `maxTexts`, none longer than MAX_LISTED_BYTES; otherwise returns undefined. */
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

  canContinue(state: number): boolean {
    const classes = this.representativeBytes.length;
    return this.next.subarray(state * classes, (state + 1) * classes).some((to) => to !== DEAD_STATE);
  }
}

function byteClasses({ edges }: Nfa): { byteClass: Uint8Array; representativeBytes: number[] } {
  const starts = new Uint8Array(257);
  starts[0] = 1;
  for (const { range } of edges.flat()) {
    starts[range[0]] = 1;
    starts[range[1] + 1] = 1;
  }
  const byteClass = new Uint8Array(256);
  const representativeBytes: number[] = [];
  for (let byte = 0; byte < 256; byte++) {
    if (starts[byte] === 1) representativeBytes.push(byte);
    byteClass[byte] = representativeBytes.length - 1;
  }
  return { byteClass, representativeBytes };
}

/** Converts to a deterministic automaton by subset construction (Rabin and Scott 1959). */
function* determinize(
  nfa: Nfa,
  byteClass: Uint8Array,
  classCount: number,
  name: string,
): Steps<{ next: Int32Array; accepting: Uint8Array }> {
  const closures = new EpsilonClosures(nfa);
  const stateByKey = new Map<string, number>();
  const sets: (readonly number[])[] = [];
  const rows: Int32Array[] = [];
  const getState = (set: readonly number[]): number => {
    const key = set.join(",");
    let state = stateByKey.get(key);
    if (state === undefined) {
      if (sets.length >= MAX_STATES) throw tooLargeError(name);
      stateByKey.set(key, (state = sets.push(set) - 1));
    }
    return state;
  };
  getState(closures.of([nfa.start]));
  for (let state = 0; state < sets.length; state++) {
    if (closures.visits > MAX_VISITS) throw tooLargeError(name);
    if (state % STATES_PER_STEP === STATES_PER_STEP - 1) yield;
    const targets = Array.from({ length: classCount }, (): number[] => []);
    for (const each of sets[state]) {
      for (const { range, to } of nfa.edges[each]) {
        for (let k = byteClass[range[0]]; k <= byteClass[range[1]]; k++) targets[k].push(to);
      }
    }
    rows.push(Int32Array.from(targets, (to) => (to.length === 0 ? DEAD_STATE : getState(closures.of(to)))));
  }
  const next = new Int32Array(sets.length * classCount);
  rows.forEach((row, state) => next.set(row, state * classCount));
  return { next, accepting: Uint8Array.from(sets, (set) => (set.includes(nfa.end) ? 1 : 0)) };
}

/** The states reachable along epsilon edges, sorted and limited to states with byte edges and the end. */
class EpsilonClosures {
  private readonly seen: Int32Array;
  private round = 0;
  /** Number of states visited so far. */
  visits = 0;

  constructor(private readonly nfa: Nfa) {
    this.seen = new Int32Array(nfa.edges.length);
  }

  of(states: readonly number[]): number[] {
    const { nfa, seen } = this;
    const round = ++this.round;
    const stack = [...states];
    const result: number[] = [];
    while (stack.length > 0) {
      const state = stack.pop()!;
      this.visits++;
      if (seen[state] === round) continue;
      seen[state] = round;
      if (nfa.edges[state].length > 0 || state === nfa.end) result.push(state);
      for (const to of nfa.epsilonEdges[state]) stack.push(to);
    }
    return result.sort((a, b) => a - b);
  }
}

function tooLargeError(name: string): LlamaGymError {
  return invalidArgument(
    `${name} is too large: its automaton needs more than ${MAX_STATES} states or too many steps to build. Reduce its repetitions or lengths.`,
  );
}
