import { invalidArgument, type LlamaGymError } from "../../../core/errors.js";
import { type CharacterSet, characterSet } from "./character-set.js";

/** Larger automata come from patterns with long repetitions that overlap. */
export const MAX_STATES = 20_000;

/** Creates the error for an automaton of more than MAX_STATES states. */
export function tooLargeError(): LlamaGymError {
  return invalidArgument(`The pattern needs more than ${MAX_STATES} states. Reduce its repetitions or lengths.`);
}

/** Splits characters by the classes that they are in; -1 for none. */
export function refineClasses(as: readonly CharacterSet[], bs: readonly CharacterSet[]) {
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
