import { ANY_CHARACTER, type CharacterSet, characterSet } from "./character-set.js";
import { MAX_STATES, refineClasses, tooLargeError } from "./character-classes.js";

/** Maximum length of texts that tell states apart. */
const MAX_ROUNDS = 100;

/** Maximum number of states that count characters; more of them take long to build. */
const MAX_COUNTED = 20_000;

/** The state of texts that are not a prefix of a match. */
export const DEAD = -1;

/**
 * A deterministic automaton over characters. Every state leads to an accepting one, except state 0
 * of an empty language.
 */
export class TextAutomaton {
  private constructor(
    /**
     * Disjoint sets; all states treat the characters of a set alike, and no text contains others.
     */
    private readonly classes: readonly CharacterSet[],
    /** [states, classes]: the next state or DEAD. State 0 is the start. */
    private readonly next: Int32Array,
    /** [states] */
    readonly accepting: Uint8Array,
  ) {}

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

  /**
   * Merges the states that the same texts lead from to an accepting one (Moore 1956), unless only
   * long texts tell them apart.
   */
  minimize(): TextAutomaton {
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

  /** Returns a shortest text; undefined if there is none. */
  shortestText(): string | undefined {
    const texts: (string | undefined)[] = [""];
    const open = [0];
    for (const state of open) {
      if (this.accepting[state] === 1) return texts[state];
      for (const { set, to } of this.edges(state)) {
        if (texts[to] !== undefined) continue;
        texts[to] = texts[state]! + String.fromCodePoint(set[0][0]);
        open.push(to);
      }
    }
    return undefined;
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
    const groups = refineClasses(this.classes, other.classes);
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
      if (states.length > MAX_STATES) throw tooLargeError();
    }
    return TextAutomaton.create(classes, rows, states.map(accepts));
  }
}
