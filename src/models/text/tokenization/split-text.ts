/** Treatment of matches when splitting a text (tokenizers' SplitDelimiterBehavior). */
export type SplitBehavior = "Removed" | "Isolated" | "MergedWithPrevious" | "MergedWithNext" | "Contiguous";

export const splitBehaviors: readonly SplitBehavior[] = [
  "Removed",
  "Isolated",
  "MergedWithPrevious",
  "MergedWithNext",
  "Contiguous",
];

/**
 * Splits a text at the matches of a global expression (with `invert`, at the text between them),
 * omitting empty pieces.
 */
export function splitText(text: string, pattern: RegExp, behavior: SplitBehavior, invert = false): string[] {
  if (behavior === "Isolated") return isolate(text, pattern);
  const { starts, matched } = findBoundaries(text, pattern, invert);
  const end = (index: number) => starts[index + 1] ?? text.length;
  const pieces: string[] = [];
  if (behavior === "Removed") {
    starts.forEach((start, i) => {
      if (!matched[i]) pieces.push(text.slice(start, end(i)));
    });
    return pieces;
  }
  let pieceStart = 0;
  for (let i = 1; i < starts.length; i++) {
    if (!shouldJoin(behavior, matched[i - 1], matched[i])) {
      pieces.push(text.slice(pieceStart, starts[i]));
      pieceStart = starts[i];
    }
  }
  if (starts.length > 0) pieces.push(text.slice(pieceStart));
  return pieces;
}

/** Whether two adjacent spans stay together. */
function shouldJoin(behavior: SplitBehavior, left: boolean, right: boolean): boolean {
  if (behavior === "Contiguous") return left === right;
  return behavior === "MergedWithPrevious" ? right && !left : left && !right;
}

function isolate(text: string, pattern: RegExp): string[] {
  // Most patterns match everywhere; the matches are then the pieces.
  const matches = text.match(pattern);
  if (!matches) return text === "" ? [] : [text];
  let covered = 0;
  for (const match of matches) covered += match.length;
  if (covered === text.length && !matches.includes("")) return matches;
  const pieces: string[] = [];
  let last = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > last) pieces.push(text.slice(last, match.index));
    if (match[0] !== "") pieces.push(match[0]);
    last = match.index + match[0].length;
  }
  if (last < text.length) pieces.push(text.slice(last));
  return pieces;
}

/** Returns the starts of the spans in order and whether each matches. */
function findBoundaries(text: string, pattern: RegExp, invert: boolean): { starts: number[]; matched: boolean[] } {
  const starts: number[] = [];
  const matched: boolean[] = [];
  let last = 0;
  for (const match of text.matchAll(pattern)) {
    if (match[0] === "") continue;
    if (match.index > last) {
      starts.push(last);
      matched.push(invert);
    }
    starts.push(match.index);
    matched.push(!invert);
    last = match.index + match[0].length;
  }
  if (last < text.length) {
    starts.push(last);
    matched.push(invert);
  }
  return { starts, matched };
}
