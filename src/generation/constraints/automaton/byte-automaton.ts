import { LlamaGymError } from "../../../core/errors.js";
import { EMPTY_TEXT, type Expression, NO_MATCH } from "../regex/expression.js";
import { Nfa } from "./nfa.js";

/** Larger ones take more than some seconds to build. */
const MAX_STATES = 30_000;
/** The same for states of the nondeterministic automaton that are looked at. */
const MAX_VISITS = 10_000_000;

/** There is no way on: the text is none of the language. */
export const DEAD_STATE = -1;

/**
 * A deterministic automaton over the bytes of UTF-8 text. From every state some text leads to an accepting one, so a text that
 * has not reached DEAD can still become one of the language.
 */
export class ByteAutomaton {
  /** Bytes that no state tells apart are one class. */
  readonly byteClass: Uint8Array;
  /** The first byte of each class. */
  readonly representativeBytes: readonly number[];
  /** [states, classes]: the next state, or DEAD. State 0 is the start. */
  readonly next: Int32Array;
  /** For each state 1 when the text up to it is of the language. */
  readonly accepting: Uint8Array;

  /**
   * `name` says in messages what it is of. Throws INVALID_ARGUMENT for an expression that has no text, or only the empty one, or
   * takes too many states.
   */
  constructor(
    expression: Expression,
    readonly name: string,
  ) {
    if (expression === NO_MATCH) throw invalid(`${name} allows no text at all, so a reply could never end.`);
    if (expression === EMPTY_TEXT) throw invalid(`${name} allows only the empty text: there is nothing to generate.`);
    const nfa = new Nfa(expression, name);
    const { byteClass, representativeBytes } = byteClasses(nfa);
    this.byteClass = byteClass;
    this.representativeBytes = representativeBytes;
    const { next, accepting } = determinize(nfa, byteClass, representativeBytes.length, name);
    this.next = next;
    this.accepting = accepting;
  }

  get stateCount(): number {
    return this.accepting.length;
  }

  /** The state after a byte. */
  step(state: number, byte: number): number {
    return this.next[state * this.representativeBytes.length + this.byteClass[byte]];
  }

  /** The state after bytes; DEAD when no text of the language goes on like that. */
  walk(state: number, bytes: Iterable<number>): number {
    let at = state;
    for (const byte of bytes) {
      if (at === DEAD_STATE) break;
      at = this.step(at, byte);
    }
    return at;
  }

  /** Whether a state has a way on. */
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

/** The subset construction (Rabin and Scott 1959). */
function determinize(
  nfa: Nfa,
  byteClass: Uint8Array,
  classCount: number,
  name: string,
): { next: Int32Array; accepting: Uint8Array } {
  const closures = new EpsilonClosures(nfa);
  const stateByKey = new Map<string, number>();
  const sets: (readonly number[])[] = [];
  const rows: Int32Array[] = [];
  const stateOf = (set: readonly number[]): number => {
    const key = set.join(",");
    let state = stateByKey.get(key);
    if (state === undefined) {
      if (sets.length >= MAX_STATES) throw tooLargeError(name);
      stateByKey.set(key, (state = sets.push(set) - 1));
    }
    return state;
  };
  stateOf(closures.of([nfa.start]));
  for (let state = 0; state < sets.length; state++) {
    if (closures.visits > MAX_VISITS) throw tooLargeError(name);
    const targets = Array.from({ length: classCount }, (): number[] => []);
    for (const each of sets[state]) {
      for (const { range, to } of nfa.edges[each]) {
        for (let k = byteClass[range[0]]; k <= byteClass[range[1]]; k++) targets[k].push(to);
      }
    }
    rows.push(Int32Array.from(targets, (to) => (to.length === 0 ? DEAD_STATE : stateOf(closures.of(to)))));
  }
  const next = new Int32Array(sets.length * classCount);
  rows.forEach((row, state) => next.set(row, state * classCount));
  return { next, accepting: Uint8Array.from(sets, (set) => (set.includes(nfa.end) ? 1 : 0)) };
}

/** What can be reached along jumps, as sorted states that have edges, or are the end. */
class EpsilonClosures {
  private readonly seen: Int32Array;
  private round = 0;
  /** How many states have been looked at. */
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
  return invalid(
    `${name} is too large: its automaton takes more than ${MAX_STATES} states, or too many ways at once. Make its repetitions or lengths smaller.`,
  );
}

function invalid(message: string): LlamaGymError {
  return new LlamaGymError("INVALID_ARGUMENT", message);
}
