import { invalidArgument } from "../../../core/errors.js";
import type { Steps } from "../../../core/steps.js";
import type { CharacterSet } from "../regex/character-set.js";
import { type RegexExpression, type ListExpression, NO_MATCH, type GrammarRule, literal } from "../regex/expression.js";
import { type ByteRange, utf8Sequences } from "./utf8-sequences.js";

/** A transition over one byte. */
export interface ByteEdge {
  readonly range: ByteRange;
  readonly to: number;
}

/** A transition over a text of a rule. */
export interface RuleEdge {
  readonly rule: number;
  readonly to: number;
}

/** More states come from mistakes, or from repetitions of hundreds of thousands. */
const MAX_STATES = 1_000_000;
/** Parts of an expression that are added at once: some 5,000 states, in a few milliseconds. */
const EXPRESSIONS_PER_STEP = 500;

const NO_EDGES: readonly never[] = [];

/**
 * Nondeterministic automata over the bytes of UTF-8 text (Thompson 1968), one for each rule:
 * exactly a rule's texts lead from its start along `byteEdges`, `epsilonEdges` and `ruleEdges` to
 * its end. Rule 0 is the whole expression.
 */
export class Nfa {
  readonly byteEdges: (readonly ByteEdge[])[] = [];
  readonly epsilonEdges: (readonly number[])[] = [];
  readonly ruleEdges: (readonly RuleEdge[])[] = [];
  /** [rules] */
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  readonly rules: GrammarRule[] = [];
  /** [states]: the rule that a state belongs to. */
  readonly ruleOf: number[] = [];
  private readonly ruleNumbers = new Map<GrammarRule, number>();
  /** Rules of the bodies of repetitions. */
  private readonly bodyRules = new Map<RegexExpression, GrammarRule>();
  /** By character set: repetitions share one. */
  private readonly sequences = new Map<CharacterSet, readonly (readonly ByteRange[])[]>();
  private currentRule = 0;
  private expressionCount = 0;

  private constructor(private readonly name: string) {}

  /**
   * Builds the automata of an expression and its rules.
   * @param name of the pattern in messages.
   * @throws INVALID_ARGUMENT for an expression that needs too many states.
   */
  static *build(expression: RegexExpression, name: string): Steps<Nfa> {
    const nfa = new Nfa(name);
    nfa.getRule({ expression: () => expression, isValue: false });
    for (let rule = 0; rule < nfa.rules.length; rule++) {
      yield;
      nfa.currentRule = rule;
      nfa.starts[rule] = nfa.addState();
      nfa.ends[rule] = nfa.addState();
      const body = nfa.rules[rule].expression();
      // Without edges to its end, a rule matches no text.
      if (body !== NO_MATCH) nfa.addEpsilonEdge(yield* nfa.addExpression(body, nfa.starts[rule]), nfa.ends[rule]);
    }
    return nfa;
  }

  get stateCount(): number {
    return this.byteEdges.length;
  }

  private getRule(rule: GrammarRule): number {
    let number = this.ruleNumbers.get(rule);
    if (number === undefined) this.ruleNumbers.set(rule, (number = this.rules.push(rule) - 1));
    return number;
  }

  private addState(): number {
    if (this.byteEdges.length >= MAX_STATES)
      throw invalidArgument(
        `${this.name} is too large: it needs more than ${MAX_STATES} states. Reduce its repetitions or lengths.`,
      );
    this.epsilonEdges.push(NO_EDGES);
    this.ruleEdges.push(NO_EDGES);
    this.ruleOf.push(this.currentRule);
    return this.byteEdges.push(NO_EDGES) - 1;
  }

  /**
   * Adds an expression after a state that has no loop to itself, and returns the state in which the
   * expression ends.
   */
  private *addExpression(expression: RegexExpression, start: number): Steps<number> {
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
      case "automaton":
        return this.addAutomaton(expression, start);
      case "rule":
        return this.addRuleEdge(start, expression.rule);
    }
  }

  private *addSequence(parts: readonly RegexExpression[], start: number): Steps<number> {
    let state = start;
    for (const part of parts) state = yield* this.addExpression(part, state);
    return state;
  }

  /** A body that occurs several times is one rule. */
  private *addRepetition(
    { body, min, max }: Extract<RegexExpression, { kind: "repetition" }>,
    start: number,
  ): Steps<number> {
    const copies = max === Infinity ? min + 1 : max;
    const part = copies > 2 ? this.toRule(body) : body;
    let state = start;
    for (let i = 0; i < min; i++) state = yield* this.addExpression(part, state);
    const end = this.addState();
    if (max === Infinity) {
      const loop = this.addEpsilonEdge(state, this.addState());
      this.addEpsilonEdge(yield* this.addExpression(part, loop), loop);
      this.addEpsilonEdge(loop, end);
      return end;
    }
    this.addEpsilonEdge(state, end);
    for (let i = min; i < max; i++) {
      // A separate state, because a body that is no rule may loop back to its start.
      const first = part.kind === "rule" ? state : this.addEpsilonEdge(state, this.addState());
      state = yield* this.addExpression(part, first);
      this.addEpsilonEdge(state, end);
    }
    return end;
  }

  /** Returns an expression whose copies share states, for a body of more than a few. */
  private toRule(body: RegexExpression): RegexExpression {
    if (body.kind === "rule" || (body.kind === "characters" && this.sequencesOf(body.set).length === 1)) return body;
    let rule = this.bodyRules.get(body);
    if (rule === undefined) this.bodyRules.set(body, (rule = { expression: () => body, isValue: false }));
    return { kind: "rule", rule };
  }

  /**
   * States before each item, by the number of items before it; greater numbers than the limits
   * distinguish share one.
   */
  private *addList({ items, rest, min, max }: ListExpression, start: number): Steps<number> {
    const limit = max < items.length || (rest !== NO_MATCH && max < Infinity) ? max : Infinity;
    const maxCount = limit === Infinity ? Math.max(1, min) : limit;
    const isCounted = maxCount > 1 || limit < Infinity;
    const separator = literal(", ");
    let before: (number | undefined)[] = [start];
    const addMember = function* (this: Nfa, from: number, count: number, body: RegexExpression): Steps<number> {
      const first = this.addEpsilonEdge(from, this.addState());
      const next = count === 0 ? first : yield* this.addExpression(separator, first);
      return yield* this.addExpression(isCounted ? this.toRule(body) : body, next);
    }.bind(this);
    const addTo = (states: (number | undefined)[], count: number, from: number) =>
      this.addEpsilonEdge(from, (states[count] ??= this.addState()));
    for (const { body, isRequired } of items) {
      const after: (number | undefined)[] = [];
      // One copy of the body serves the empty and the non-empty list.
      if (!isCounted) {
        const first = this.addState();
        if (before[0] !== undefined) this.addEpsilonEdge(before[0], first);
        if (before[1] !== undefined)
          this.addEpsilonEdge(
            yield* this.addExpression(separator, this.addEpsilonEdge(before[1], this.addState())),
            first,
          );
        if (max >= 1) addTo(after, 1, yield* this.addExpression(body, first));
      } else
        for (const [count, from] of before.entries()) {
          if (from === undefined || (count === limit && limit < Infinity)) continue;
          addTo(after, Math.min(count + 1, maxCount), yield* addMember(from, count, body));
        }
      if (!isRequired) for (const [count, from] of before.entries()) if (from !== undefined) addTo(after, count, from);
      before = after;
    }
    const end = this.addState();
    if (rest !== NO_MATCH)
      yield* this.addRest({ before, body: this.toRule(rest), limit, maxCount, min, end }, addMember);
    for (const [count, from] of before.entries())
      if (from !== undefined && count >= min) this.addEpsilonEdge(from, end);
    return end;
  }

  /**
   * Adds any number of members after the listed ones. Their names may repeat, so they count as one,
   * except for the limit.
   */
  private *addRest(
    { before, body, limit, maxCount, min, end }: RestStates,
    addMember: (from: number, count: number, body: RegexExpression) => Steps<number>,
  ): Steps<void> {
    if (limit === Infinity) {
      const inRest: number[] = [];
      for (const [count, from] of before.entries()) {
        if (from === undefined) continue;
        const next = Math.min(count + 1, maxCount);
        const isNew = inRest[next] === undefined;
        inRest[next] ??= this.addState();
        this.addEpsilonEdge(yield* addMember(from, count, body), inRest[next]);
        if (!isNew) continue;
        this.addEpsilonEdge(yield* addMember(inRest[next], next, body), inRest[next]);
        if (next >= min) this.addEpsilonEdge(inRest[next], end);
      }
      return;
    }
    for (let count = 0; count < limit; count++) {
      const from = before[count];
      if (from === undefined) continue;
      this.addEpsilonEdge(yield* addMember(from, count, body), (before[count + 1] ??= this.addState()));
    }
  }

  private addAutomaton({ automaton, write }: Extract<RegexExpression, { kind: "automaton" }>, start: number): number {
    const states = Array.from({ length: automaton.stateCount }, () => this.addState());
    const end = this.addState();
    this.addEpsilonEdge(start, states[0]);
    for (const [state, from] of states.entries()) {
      if (automaton.accepting[state] === 1) this.addEpsilonEdge(from, end);
      for (const { set, to } of automaton.edges(state)) this.addTransition(from, write(set), states[to]);
    }
    return end;
  }

  /** Adds an edge over a character: without further states where the character has one byte. */
  private addTransition(from: number, character: RegexExpression, to: number): void {
    const sequences = character.kind === "characters" ? this.sequencesOf(character.set) : undefined;
    if (sequences?.every(({ length }) => length === 1) === true)
      for (const [range] of sequences) this.addByteEdge(from, { range, to });
    else {
      const part = this.toRule(character);
      if (part.kind === "rule")
        this.ruleEdges[from] = append(this.ruleEdges[from], { rule: this.getRule(part.rule), to });
    }
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
          this.addByteEdge(state, { range, to });
        }
        to = state;
      }
      this.addByteEdge(start, { range: sequence[0], to });
    }
    return end;
  }

  private addByteEdge(from: number, edge: ByteEdge): void {
    this.byteEdges[from] = append(this.byteEdges[from], edge);
  }

  private addEpsilonEdge(from: number, to: number): number {
    this.epsilonEdges[from] = append(this.epsilonEdges[from], to);
    return to;
  }

  private addRuleEdge(from: number, rule: GrammarRule): number {
    const to = this.addState();
    this.ruleEdges[from] = append(this.ruleEdges[from], { rule: this.getRule(rule), to });
    return to;
  }
}

/** The states after the listed members, by their number. */
interface RestStates {
  readonly before: (number | undefined)[];
  readonly body: RegexExpression;
  readonly limit: number;
  readonly maxCount: number;
  readonly min: number;
  readonly end: number;
}

/** Appends to a list, in place unless it is the shared empty one. */
function append<Item>(list: readonly Item[], item: Item): readonly Item[] {
  if (list.length === 0) return [item];
  (list as Item[]).push(item);
  return list;
}
