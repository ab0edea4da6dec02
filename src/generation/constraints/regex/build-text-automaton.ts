import { MAX_STATES, refineClasses, tooLargeError } from "./character-classes.js";
import { ANY_CHARACTER, type CharacterSet } from "./character-set.js";
import type { RegexExpression } from "./expression.js";
import { DEAD, TextAutomaton } from "./text-automaton.js";

/**
 * Builds the automaton of an expression without rules and lists. @throws INVALID_ARGUMENT for one
 * of too many states.
 */
export function buildTextAutomaton(expression: RegexExpression): TextAutomaton {
  return determinize(new CharacterNfa(expression)).minimize();
}

/** A nondeterministic automaton over characters (Thompson 1968). */
class CharacterNfa {
  readonly edges: { set: CharacterSet; to: number }[][] = [];
  readonly epsilonEdges: number[][] = [];
  readonly end: number;
  /** States that repeat any character up to the end. */
  readonly universalStates: ReadonlySet<number>;
  private readonly setsByKey = new Map<string, CharacterSet>();
  private readonly anyLoops: { readonly loop: number; readonly end: number }[] = [];

  constructor(expression: RegexExpression) {
    this.end = this.add(expression, this.addState());
    this.universalStates = new Set(this.anyLoops.filter(({ end }) => this.leadsToEnd(end)).map(({ loop }) => loop));
  }

  /** Returns one object for equal sets. */
  private internSet(set: CharacterSet): CharacterSet {
    const key = set.join(";");
    const interned = this.setsByKey.get(key) ?? set;
    this.setsByKey.set(key, interned);
    return interned;
  }

  private leadsToEnd(start: number): boolean {
    const seen = new Set([start]);
    for (const state of seen) for (const to of this.epsilonEdges[state]) seen.add(to);
    return seen.has(this.end);
  }

  private addState(): number {
    if (this.edges.length > 2 * MAX_STATES) throw tooLargeError();
    this.epsilonEdges.push([]);
    return this.edges.push([]) - 1;
  }

  private add(expression: RegexExpression, start: number): number {
    switch (expression.kind) {
      case "characters": {
        const to = this.addState();
        this.edges[start].push({ set: this.internSet(expression.set), to });
        return to;
      }
      case "sequence":
        return expression.parts.reduce((state, part) => this.add(part, state), start);
      case "alternatives": {
        const end = this.addState();
        for (const option of expression.options)
          this.epsilonEdges[this.add(option, this.addEpsilon(start, this.addState()))].push(end);
        return end;
      }
      case "repetition": {
        const { body, min, max } = expression;
        let state = start;
        for (let i = 0; i < min; i++) state = this.add(body, state);
        const end = this.addState();
        if (max === Infinity) {
          const loop = this.addEpsilon(state, this.addState());
          this.epsilonEdges[this.add(body, loop)].push(loop);
          if (body.kind === "characters" && body.set === ANY_CHARACTER) this.anyLoops.push({ loop, end });
          return this.addEpsilon(loop, end);
        }
        this.epsilonEdges[state].push(end);
        for (let i = min; i < max; i++) {
          state = this.add(body, this.addEpsilon(state, this.addState()));
          this.epsilonEdges[state].push(end);
        }
        return end;
      }
      default:
        throw new Error(`A pattern contains no ${expression.kind}.`);
    }
  }

  private addEpsilon(from: number, to: number): number {
    this.epsilonEdges[from].push(to);
    return to;
  }
}

function determinize(nfa: CharacterNfa): TextAutomaton {
  const sets = [...new Set(nfa.edges.flat().map(({ set }) => set))];
  const { classes, classesOf } = partition(sets);
  const close = (states: Iterable<number>): number[] => {
    const seen = new Set(states);
    for (const state of seen) {
      // All texts match from here, so that other states add none.
      if (nfa.universalStates.has(state)) return [state];
      for (const to of nfa.epsilonEdges[state]) seen.add(to);
    }
    return [...seen].filter((state) => state === nfa.end || nfa.edges[state].length > 0).sort((a, b) => a - b);
  };
  const states = [close([0])];
  const numbers = new Map([[states[0].join(), 0]]);
  const rows: number[][] = [];
  for (let number = 0; number < states.length; number++) {
    const targets: (Set<number> | undefined)[] = [];
    for (const state of states[number])
      for (const { set, to } of nfa.edges[state])
        for (const group of classesOf.get(set)!) (targets[group] ??= new Set()).add(to);
    rows.push(
      classes.map((_, group) => {
        if (targets[group] === undefined) return DEAD;
        const closed = close(targets[group]);
        const key = closed.join();
        let found = numbers.get(key);
        if (found === undefined) numbers.set(key, (found = states.push(closed) - 1));
        return found;
      }),
    );
    if (states.length > MAX_STATES) throw tooLargeError();
  }
  return TextAutomaton.create(
    classes,
    rows,
    states.map((closed) => closed.includes(nfa.end) || nfa.universalStates.has(closed[0])),
  );
}

/** Splits sets into disjoint classes. */
function partition(sets: readonly CharacterSet[]) {
  let parts: { set: CharacterSet; members: readonly number[] }[] = [];
  sets.forEach((set, index) => {
    parts = refineClasses(
      parts.map((part) => part.set),
      [set],
    ).map(({ a, b, set: part }) => ({
      set: part,
      members: [...(a < 0 ? [] : parts[a].members), ...(b < 0 ? [] : [index])],
    }));
  });
  const classesOf = new Map(sets.map((set) => [set, [] as number[]]));
  parts.forEach(({ members }, group) => {
    for (const member of members) classesOf.get(sets[member])!.push(group);
  });
  return { classes: parts.map(({ set }) => set), classesOf };
}
