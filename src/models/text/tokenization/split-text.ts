import { WINDOW_LENGTH, findMatches } from "./text-windows.js";

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
 * Splits a text at the matches of a global expression (with `invert`, at the text between them).
 * Pieces of a long text may be empty, where the caller can pause.
 */
export function splitText(text: string, pattern: RegExp, behavior: SplitBehavior, invert = false): Iterable<string> {
  // Most patterns match everywhere; the matches are then the pieces.
  const matches = behavior === "Isolated" && text.length <= WINDOW_LENGTH ? text.match(pattern) : null;
  if (matches !== null && !matches.includes("")) {
    let covered = 0;
    for (const match of matches) covered += match.length;
    if (covered === text.length) return matches;
  }
  return joinSpans(text, findSpans(text, pattern, invert), behavior);
}

/** A span of text that is a match or the text between two. */
interface Span {
  readonly start: number;
  readonly end: number;
  readonly matched: boolean;
}

function* joinSpans(text: string, spans: Iterable<Span | null>, behavior: SplitBehavior): Generator<string> {
  let piece: Span | undefined;
  for (const span of spans) {
    if (span === null) {
      yield "";
    } else if (piece !== undefined && shouldJoin(behavior, piece.matched, span.matched)) {
      piece = { ...span, start: piece.start };
    } else {
      if (piece !== undefined) yield text.slice(piece.start, piece.end);
      piece = behavior === "Removed" && span.matched ? undefined : span;
    }
  }
  if (piece !== undefined) yield text.slice(piece.start, piece.end);
}

/** Whether two adjacent spans stay together. */
function shouldJoin(behavior: SplitBehavior, left: boolean, right: boolean): boolean {
  switch (behavior) {
    case "Contiguous":
      return left === right;
    case "MergedWithPrevious":
      return right && !left;
    case "MergedWithNext":
      return left && !right;
    default:
      return false;
  }
}

/** Yields the spans in order. */
function* findSpans(text: string, pattern: RegExp, invert: boolean): Generator<Span | null> {
  let last = 0;
  for (const match of findMatches(text, pattern)) {
    if (match === null) {
      yield null;
      continue;
    }
    const [start, end] = match;
    if (start === end) continue;
    if (start > last) yield { start: last, end: start, matched: invert };
    yield { start, end, matched: !invert };
    last = end;
  }
  if (last < text.length) yield { start: last, end: text.length, matched: invert };
}
