import { invalidArgument } from "../../../core/errors.js";
import type { Steps } from "../../../core/steps.js";
import type { CharacterSet } from "../regex/character-set.js";
import { type Expression, literal } from "../regex/expression.js";
import { type ByteRange, utf8Sequences } from "./utf8-sequences.js";

/** A transition over one byte. */
interface ByteEdge {
  readonly range: ByteRange;
  readonly to: number;
}

/** More states come from mistakes, or from repetitions of thousands. */
const MAX_STATES = 200_000;
/** Parts of an expression that are added at once: some 5,000 states, in a few milliseconds. */
const EXPRESSIONS_PER_STEP = 500;

/**
 * A nondeterministic automaton over the bytes of UTF-8 text (Thompson 1968): exactly the expression's texts lead from `start` along
 * `edges` and `epsilonEdges` to `end`.
 */
export class Nfa {
  readonly edges: ByteEdge[][] = [];
  readonly epsilonEdges: number[][] = [];
  readonly start: number;
  /** By character set: repetitions share one. */
  private readonly sequences = new Map<CharacterSet, readonly (readonly ByteRange[])[]>();

  private lastState = 0;
  private expressionCount = 0;

  private constructor(private readonly name: string) {
    this.start = this.addState();
  }

  get end(): number {
    return this.lastState;
  }

  /**
   * Builds the automaton of an expression.
   * @param name of the pattern in messages.
   * @throws INVALID_ARGUMENT for an expression that needs too many states.
   */
  static *build(expression: Expression, name: string): Steps<Nfa> {
    const nfa = new Nfa(name);
    nfa.lastState = yield* nfa.addExpression(expression, nfa.start);
    return nfa;
  }

  private addState(): number {
    if (this.edges.length >= MAX_STATES)
      throw invalidArgument(
        `${this.name} is too large: it needs more than ${MAX_STATES} states. Reduce its repetitions or lengths.`,
      );
    this.epsilonEdges.push([]);
    return this.edges.push([]) - 1;
  }

  /** Adds an expression after a state that has no loop to itself, and returns the state in which the expression ends. */
  private *addExpression(expression: Expression, start: number): Steps<number> {
    if (++this.expressionCount % EXPRESSIONS_PER_STEP === 0) yield;
    switch (expression.kind) {
      case "characters":
        return this.addCharacters(this.sequencesOf(expression.set), start);
      case "sequence":
        return yield* this.addSequence(expression.parts, start);
      case "alternatives": {
        const end = this.addState();
        for (const option of expression.options) {
          const first = this.addEpsilonEdge(start, this.addState());
          this.addEpsilonEdge(yield* this.addExpression(option, first), end);
        }
        return end;
      }
      case "repetition":
        return yield* this.addRepetition(expression, start);
      case "list":
        return yield* this.addList(expression, start);
      case "multiples":
        return this.addMultiples(expression, start);
    }
  }

  private *addSequence(parts: readonly Expression[], start: number): Steps<number> {
    let state = start;
    for (const part of parts) state = yield* this.addExpression(part, state);
    return state;
  }

  private *addRepetition(
    { body, min, max }: Extract<Expression, { kind: "repetition" }>,
    start: number,
  ): Steps<number> {
    let state = start;
    for (let i = 0; i < min; i++) state = yield* this.addExpression(body, state);
    const end = this.addState();
    if (max === Infinity) {
      const loop = this.addEpsilonEdge(state, this.addState());
      this.addEpsilonEdge(yield* this.addExpression(body, loop), loop);
      this.addEpsilonEdge(loop, end);
      return end;
    }
    this.addEpsilonEdge(state, end);
    for (let i = min; i < max; i++) {
      // A separate state, because the body may loop back to its start.
      state = yield* this.addExpression(body, this.addEpsilonEdge(state, this.addState()));
      this.addEpsilonEdge(state, end);
    }
    return end;
  }

  /** One copy of each item, with and without the separator before it. */
  private *addList({ items }: Extract<Expression, { kind: "list" }>, start: number): Steps<number> {
    /** The states before the first item and after another; undefined where a required item is missing. */
    let empty: number | undefined = start;
    let nonEmpty: number | undefined;
    for (const { body, isRequired } of items) {
      const first = this.addState();
      if (empty !== undefined) this.addEpsilonEdge(empty, first);
      if (nonEmpty !== undefined) {
        const separated = this.addEpsilonEdge(nonEmpty, this.addState());
        this.addEpsilonEdge(yield* this.addExpression(literal(", "), separated), first);
      }
      const next = this.addEpsilonEdge(yield* this.addExpression(body, first), this.addState());
      if (isRequired) empty = undefined;
      else if (nonEmpty !== undefined) this.addEpsilonEdge(nonEmpty, next);
      nonEmpty = next;
    }
    const end = this.addState();
    for (const state of [empty, nonEmpty]) if (state !== undefined) this.addEpsilonEdge(state, end);
    return end;
  }

  /** Positive multiples without leading zeros: one state per number of digits and remainder. */
  private addMultiples({ divisor, maxDigits }: Extract<Expression, { kind: "multiples" }>, start: number): number {
    const end = this.addState();
    const addRemainders = () => Array.from({ length: divisor }, () => this.addState());
    let from: { state: number; remainder: number }[] = [{ state: start, remainder: 0 }];
    for (let digits = 0; digits < maxDigits; digits++) {
      const to = addRemainders();
      this.addEpsilonEdge(to[0], end);
      for (const { state, remainder } of from) {
        for (let digit = digits === 0 ? 1 : 0; digit <= 9; digit++) {
          const byte = 0x30 + digit;
          this.edges[state].push({ range: [byte, byte], to: to[(remainder * 10 + digit) % divisor] });
        }
      }
      from = to.map((state, remainder) => ({ state, remainder }));
    }
    return end;
  }

  private sequencesOf(set: CharacterSet): readonly (readonly ByteRange[])[] {
    const sequences = this.sequences.get(set) ?? utf8Sequences(set);
    this.sequences.set(set, sequences);
    return sequences;
  }

  /** Sequences with a common suffix share its states. */
  private addCharacters(sequences: readonly (readonly ByteRange[])[], start: number): number {
    const end = this.addState();
    const stateByKey = new Map<string, number>();
    for (const sequence of sequences) {
      let to = end;
      for (const range of sequence.slice(1).reverse()) {
        const key = `${range[0]}-${range[1]}-${to}`;
        let state = stateByKey.get(key);
        if (state === undefined) {
          stateByKey.set(key, (state = this.addState()));
          this.edges[state].push({ range, to });
        }
        to = state;
      }
      this.edges[start].push({ range: sequence[0], to });
    }
    return end;
  }

  private addEpsilonEdge(from: number, to: number): number {
    this.epsilonEdges[from].push(to);
    return to;
  }
}
