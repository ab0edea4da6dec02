import { invalidArgument } from "../../../core/errors.js";
import { ANY_CHARACTER, type CharacterSet, characterSet } from "./character-set.js";
import type { Expression } from "./expression.js";

/** Larger automata come from patterns with long repetitions that overlap. */
const MAX_STATES = 50_000;

/** Maximum length of texts that tell states apart. */
const MAX_ROUNDS = 100;

/** Maximum number of states that count characters; more of them take long to build. */
const MAX_COUNTED = 20_000;

/** The state of texts that are not a prefix of a match. */
const DEAD = -1;

/** A deterministic automaton over characters. Every state leads to an accepting one, except state 0 of an empty language. */
export class TextAutomaton {
  private constructor(
    /** Disjoint sets; all states treat the characters of a set alike, and no text contains others. */
    private readonly classes: readonly CharacterSet[],
    /** [states, classes]: the next state or DEAD. State 0 is the start. */
    private readonly next: Int32Array,
    /** [states] */
    readonly accepting: Uint8Array,
  ) {}

  /** Builds the automaton of an expression without rules and lists. @throws INVALID_ARGUMENT for one of too many states. */
  static of(expression: Expression): TextAutomaton {
    return determinize(new CharacterNfa(expression)).minimize();
  }

  /** Matches all texts. */
  static any(): TextAutomaton {
    return new TextAutomaton([ANY_CHARACTER], Int32Array.of(0), Uint8Array.of(1));
  }

  /** Creates an automaton of the states that can be reached and lead to an accepting one. */
  static create(classes: readonly CharacterSet[], rows: readonly (readonly number[])[], accepting: readonly boolean[]) {
    const incoming: number[][] = rows.map(() => []);
    rows.forEach((row, from) => {
      for (const to of row) if (to !== DEAD) incoming[to].push(from);
    });
    const live = new Set([...rows.keys()].filter((state) => accepting[state]));
    for (const state of live) for (const from of incoming[state]) live.add(from);
    const kept = [0, ...[...live].filter((state) => state !== 0).sort((a, b) => a - b)];
    const numbers = new Map(kept.map((state, number) => [state, number]));
    const next = kept.flatMap((state) => rows[state].map((to) => (live.has(to) ? numbers.get(to)! : DEAD)));
    return new TextAutomaton(
      classes,
      Int32Array.from(next),
      Uint8Array.from(kept, (state) => (accepting[state] ? 1 : 0)),
    );
  }

  /** Merges the states that the same texts lead from to an accepting one (Moore 1956), unless only long texts tell them apart. */
  private minimize(): TextAutomaton {
    const { classes, next, accepting } = this;
    const width = classes.length;
    let groups: readonly number[] = Array.from(accepting);
    let count = new Set(groups).size;
    for (let round = 0; ; round++) {
      if (round === MAX_ROUNDS) return this;
      const numbers = new Map<string, number>();
      const refined = groups.map((group, state) => {
        let key = String(group);
        for (let i = state * width; i < (state + 1) * width; i++)
          key += `,${next[i] === DEAD ? DEAD : groups[next[i]]}`;
        const number = numbers.get(key) ?? numbers.size;
        numbers.set(key, number);
        return number;
      });
      groups = refined;
      if (numbers.size === count) break;
      count = numbers.size;
    }
    // Group 0 has the start.
    const first = Array.from({ length: count }, (_, group) => groups.indexOf(group));
    const rows = first.map((state) =>
      classes.map((_, i) => (next[state * width + i] === DEAD ? DEAD : groups[next[state * width + i]])),
    );
    return TextAutomaton.create(
      classes,
      rows,
      first.map((state) => accepting[state] === 1),
    );
  }

  get stateCount(): number {
    return this.accepting.length;
  }

  get isEmpty(): boolean {
    return this.stateCount === 1 && this.accepting[0] === 0;
  }

  /** Lists the transitions from a state, one for each next state. */
  edges(state: number): { set: CharacterSet; to: number }[] {
    const rangesByTarget = new Map<number, (readonly [number, number])[]>();
    this.classes.forEach((set, group) => {
      const to = this.next[state * this.classes.length + group];
      if (to === DEAD) return;
      const ranges = rangesByTarget.get(to);
      if (ranges === undefined) rangesByTarget.set(to, [...set]);
      else ranges.push(...set);
    });
    return Array.from(rangesByTarget, ([to, ranges]) => ({ set: characterSet(ranges), to }));
  }

  matches(text: string): boolean {
    let state = 0;
    for (const character of text) {
      const code = character.codePointAt(0)!;
      const group = this.classes.findIndex((set) => set.some(([first, last]) => code >= first && code <= last));
      state = group < 0 ? DEAD : this.next[state * this.classes.length + group];
      if (state === DEAD) return false;
    }
    return this.accepting[state] === 1;
  }

  /** Matches the texts that both match. */
  and(other: TextAutomaton): TextAutomaton {
    return this.combine(other, (a, b) => a && b, true);
  }

  /** Matches the texts that the other one does not match. */
  without(other: TextAutomaton): TextAutomaton {
    return this.combine(other, (a, b) => a && !b, false);
  }

  /** Matches the texts of `min` to `max` characters: of fewer, if more need too many states. */
  withLength(min: number, maxLength: number): TextAutomaton {
    const isImplied = maxLength === Infinity || maxLength >= this.longestLength();
    const max = isImplied ? Infinity : Math.min(maxLength, Math.max(min, Math.floor(MAX_COUNTED / this.stateCount)));
    if (min === 0 && max === Infinity) return this;
    // Texts of more characters than the greater finite limit are alike.
    const limit = max === Infinity ? min : max;
    return this.explore<readonly [state: number, length: number]>(
      this.classes,
      [0, 0],
      ([state, length]) => this.accepting[state] === 1 && length >= min && length <= max,
      ([state, length], group) => {
        const to = this.next[state * this.classes.length + group];
        if (to === DEAD || (length === limit && max < Infinity)) return undefined;
        return [to, Math.min(limit, length + 1)];
      },
    );
  }

  /** Matches the texts that one character of each set surround. */
  trim(start: CharacterSet, end: CharacterSet): TextAutomaton {
    const { classes, next } = this;
    const step = (state: number, [[code]]: CharacterSet) => {
      const group = classes.findIndex((set) => set.some(([first, last]) => code >= first && code <= last));
      return group < 0 ? DEAD : next[state * classes.length + group];
    };
    const first = step(0, start);
    if (first === DEAD) return TextAutomaton.create(classes, [classes.map(() => DEAD)], [false]);
    return this.explore<readonly [state: number, unused: number]>(
      classes,
      [first, 0],
      ([state]) => {
        const last = step(state, end);
        return last !== DEAD && this.accepting[last] === 1;
      },
      ([state], group) => {
        const to = next[state * classes.length + group];
        return to === DEAD ? undefined : [to, 0];
      },
    );
  }

  /** Returns the length of the longest text. */
  private longestLength(): number {
    const lengths: (number | undefined)[] = [];
    const open = [0];
    const isOpen = new Uint8Array(this.stateCount);
    while (open.length > 0) {
      const state = open[open.length - 1];
      const targets = this.edges(state).map(({ to }) => to);
      const next = targets.find((to) => lengths[to] === undefined);
      isOpen[state] = 1;
      if (next === undefined) {
        lengths[state] = Math.max(0, ...targets.map((to) => lengths[to]! + 1));
        open.pop();
      } else if (isOpen[next] === 1) return Infinity;
      else open.push(next);
    }
    return lengths[0]!;
  }

  private combine(
    other: TextAutomaton,
    accepts: (a: boolean, b: boolean) => boolean,
    needsBoth: boolean,
  ): TextAutomaton {
    const groups = refine(this.classes, other.classes);
    const step = ({ next, classes }: TextAutomaton, state: number, group: number) =>
      state === DEAD || group < 0 ? DEAD : next[state * classes.length + group];
    const ends = ({ accepting }: TextAutomaton, state: number) => state !== DEAD && accepting[state] === 1;
    return this.explore<readonly [a: number, b: number]>(
      groups.map(({ set }) => set),
      [0, 0],
      ([a, b]) => accepts(ends(this, a), ends(other, b)),
      ([a, b], index) => {
        const { a: groupA, b: groupB } = groups[index];
        const pair = [step(this, a, groupA), step(other, b, groupB)] as const;
        return pair[0] === DEAD || (needsBoth && pair[1] === DEAD) ? undefined : pair;
      },
    );
  }

  /** Builds the automaton of states that are pairs of numbers. */
  private explore<State extends readonly [number, number]>(
    classes: readonly CharacterSet[],
    start: State,
    accepts: (state: State) => boolean,
    step: (state: State, group: number) => State | undefined,
  ): TextAutomaton {
    const states = [start];
    const numbers = new Map([[start.join(), 0]]);
    const rows: number[][] = [];
    for (let number = 0; number < states.length; number++) {
      const row = classes.map((_, group) => {
        const to = step(states[number], group);
        if (to === undefined) return DEAD;
        const key = to.join();
        let found = numbers.get(key);
        if (found === undefined) numbers.set(key, (found = states.push(to) - 1));
        return found;
      });
      rows.push(row);
      if (states.length > MAX_STATES) throw tooLarge();
    }
    return TextAutomaton.create(classes, rows, states.map(accepts));
  }
}

function tooLarge() {
  return invalidArgument(`The pattern needs more than ${MAX_STATES} states. Reduce its repetitions or lengths.`);
}

/** Splits characters by the classes that they are in; -1 for none. */
function refine(as: readonly CharacterSet[], bs: readonly CharacterSet[]) {
  const parts = new Map<string, { a: number; b: number; ranges: [number, number][] }>();
  const starts = new Set<number>();
  for (const [first, last] of [...as, ...bs].flat()) starts.add(first).add(last + 1);
  const sorted = [...starts].sort((x, y) => x - y);
  const find = finder(as);
  const findOther = finder(bs);
  sorted.slice(0, -1).forEach((first, i) => {
    const [a, b] = [find(first), findOther(first)];
    if (a < 0 && b < 0) return;
    const key = `${a},${b}`;
    const part = parts.get(key) ?? { a, b, ranges: [] };
    part.ranges.push([first, sorted[i + 1] - 1]);
    parts.set(key, part);
  });
  return Array.from(parts.values(), ({ a, b, ranges }) => ({ a, b, set: characterSet(ranges) }));
}

/** Returns a function that finds the class of ascending code points. */
function finder(classes: readonly CharacterSet[]): (code: number) => number {
  const ranges = classes.flatMap((set, group) => set.map(([first, last]) => ({ first, last, group })));
  ranges.sort((a, b) => a.first - b.first);
  let i = 0;
  return (code) => {
    while (i < ranges.length && ranges[i].last < code) i++;
    return i < ranges.length && ranges[i].first <= code ? ranges[i].group : -1;
  };
}

/** A nondeterministic automaton over characters (Thompson 1968). */
class CharacterNfa {
  readonly edges: { set: CharacterSet; to: number }[][] = [];
  readonly epsilonEdges: number[][] = [];
  readonly end: number;
  /** States that repeat any character up to the end. */
  readonly universalStates: ReadonlySet<number>;
  private readonly anyLoops: { readonly loop: number; readonly end: number }[] = [];

  constructor(expression: Expression) {
    this.end = this.add(expression, this.addState());
    this.universalStates = new Set(this.anyLoops.filter(({ end }) => this.leadsToEnd(end)).map(({ loop }) => loop));
  }

  private leadsToEnd(start: number): boolean {
    const seen = new Set([start]);
    for (const state of seen) for (const to of this.epsilonEdges[state]) seen.add(to);
    return seen.has(this.end);
  }

  private addState(): number {
    if (this.edges.length > 2 * MAX_STATES) throw tooLarge();
    this.epsilonEdges.push([]);
    return this.edges.push([]) - 1;
  }

  private add(expression: Expression, start: number): number {
    switch (expression.kind) {
      case "characters": {
        const to = this.addState();
        this.edges[start].push({ set: expression.set, to });
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
    if (states.length > MAX_STATES) throw tooLarge();
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
    parts = refine(
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
