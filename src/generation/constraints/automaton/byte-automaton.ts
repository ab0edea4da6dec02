import { LlamaGymError } from "../../../errors.js";
import { EMPTY_TEXT, type Expression, NOTHING } from "../regex/expression.js";
import { Nfa } from "./nfa.js";

/** Larger ones take more than some seconds to build. */
const MOST_STATES = 30_000;
/** The same for states of the nondeterministic automaton that are looked at. */
const MOST_VISITS = 10_000_000;

/** There is no way on: the text is none of the language. */
export const DEAD = -1;

/**
 * A deterministic automaton over the bytes of UTF-8 text. From every state some text leads to an accepting one, so a text that
 * has not reached DEAD can still become one of the language.
 */
export class ByteAutomaton {
  /** Bytes that no state tells apart are one class. */
  readonly classOf: Uint8Array;
  /** The first byte of each class. */
  readonly byteOfClass: readonly number[];
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
    if (expression === NOTHING) throw invalid(`${name} allows no text at all, so a reply could never end.`);
    if (expression === EMPTY_TEXT) throw invalid(`${name} allows only the empty text: there is nothing to generate.`);
    const nfa = new Nfa(expression, name);
    const { classOf, byteOfClass } = byteClasses(nfa);
    this.classOf = classOf;
    this.byteOfClass = byteOfClass;
    const { next, accepting } = determinise(nfa, classOf, byteOfClass.length, name);
    this.next = next;
    this.accepting = accepting;
  }

  get states(): number {
    return this.accepting.length;
  }

  /** The state after a byte. */
  step(state: number, byte: number): number {
    return this.next[state * this.byteOfClass.length + this.classOf[byte]];
  }

  /** The state after bytes; DEAD when no text of the language goes on like that. */
  walk(state: number, bytes: Iterable<number>): number {
    let at = state;
    for (const byte of bytes) {
      if (at === DEAD) break;
      at = this.step(at, byte);
    }
    return at;
  }

  /** Whether a state has a way on. */
  goesOn(state: number): boolean {
    const classes = this.byteOfClass.length;
    return this.next.subarray(state * classes, (state + 1) * classes).some((to) => to !== DEAD);
  }
}

function byteClasses({ edges }: Nfa): { classOf: Uint8Array; byteOfClass: number[] } {
  const starts = new Uint8Array(257);
  starts[0] = 1;
  for (const { range } of edges.flat()) {
    starts[range[0]] = 1;
    starts[range[1] + 1] = 1;
  }
  const classOf = new Uint8Array(256);
  const byteOfClass: number[] = [];
  for (let byte = 0; byte < 256; byte++) {
    if (starts[byte] === 1) byteOfClass.push(byte);
    classOf[byte] = byteOfClass.length - 1;
  }
  return { classOf, byteOfClass };
}

/** The subset construction (Rabin and Scott 1959). */
function determinise(
  nfa: Nfa,
  classOf: Uint8Array,
  classes: number,
  name: string,
): { next: Int32Array; accepting: Uint8Array } {
  const closures = new Closures(nfa);
  const numbers = new Map<string, number>();
  const sets: (readonly number[])[] = [];
  const rows: Int32Array[] = [];
  const numberOf = (set: readonly number[]): number => {
    const key = set.join(",");
    let number = numbers.get(key);
    if (number === undefined) {
      if (sets.length >= MOST_STATES) throw tooLarge(name);
      numbers.set(key, (number = sets.push(set) - 1));
    }
    return number;
  };
  numberOf(closures.of([nfa.start]));
  for (let state = 0; state < sets.length; state++) {
    if (closures.visits > MOST_VISITS) throw tooLarge(name);
    const targets = Array.from({ length: classes }, (): number[] => []);
    for (const each of sets[state]) {
      for (const { range, to } of nfa.edges[each]) {
        for (let k = classOf[range[0]]; k <= classOf[range[1]]; k++) targets[k].push(to);
      }
    }
    rows.push(Int32Array.from(targets, (to) => (to.length === 0 ? DEAD : numberOf(closures.of(to)))));
  }
  const next = new Int32Array(sets.length * classes);
  rows.forEach((row, state) => next.set(row, state * classes));
  return { next, accepting: Uint8Array.from(sets, (set) => (set.includes(nfa.end) ? 1 : 0)) };
}

/** What can be reached along jumps, as sorted states that have edges, or are the end. */
class Closures {
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
      for (const to of nfa.jumps[state]) stack.push(to);
    }
    return result.sort((a, b) => a - b);
  }
}

function tooLarge(name: string): LlamaGymError {
  return invalid(
    `${name} is too large: its automaton takes more than ${MOST_STATES} states, or too many ways at once. Make its repetitions or lengths smaller.`,
  );
}

function invalid(message: string): LlamaGymError {
  return new LlamaGymError("INVALID_ARGUMENT", message);
}
