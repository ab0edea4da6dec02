import { type Steps, runSteps } from "../../../core/steps.js";

/**
 * Characters that stand, while a template is rendered, for those characters of content with which a
 * special token could begin. Each stands for one character, so that lengths and positions agree;
 * comparisons and searches read the original text.
 */
export class ContentMarks {
  private readonly fromCharacters: readonly (readonly [string, string])[];
  private readonly fromMarks: readonly (readonly [string, string])[];
  private readonly marks: ReadonlySet<string>;

  constructor(marksByCharacter: ReadonlyMap<string, string>) {
    this.fromCharacters = [...marksByCharacter];
    this.fromMarks = this.fromCharacters.map(([character, mark]) => [mark, character]);
    this.marks = new Set(marksByCharacter.values());
  }

  mark(text: string): string {
    return runSteps(this.markSteps(text));
  }

  markSteps(text: string): Steps<string> {
    return replaceCharacters(text, this.fromCharacters);
  }

  /** Returns the original text. */
  unmark(text: string): string {
    return this.marks.size === 0 ? text : runSteps(this.unmarkSteps(text));
  }

  unmarkSteps(text: string): Steps<string> {
    return replaceCharacters(text, this.fromMarks);
  }

  /** Yields the ascending positions of the marks in a text. */
  *findMarks(text: string): Generator<number> {
    // All marks begin with a unit above the letters, which keeps the search fast.
    for (let i = 0; i < text.length; i++)
      if (text.charCodeAt(i) >= 0xd800 && this.marks.has(String.fromCodePoint(text.codePointAt(i)!))) yield i;
  }
}

/** UTF-16 units that are replaced at once. */
const WINDOW_LENGTH = 8192;

const units = new Uint16Array(WINDOW_LENGTH);

/**
 * Replaces characters by others of as many UTF-16 units, in steps. Replacing millions of matches
 * with the methods of strings takes ten times as long.
 */
function* replaceCharacters(text: string, replacements: readonly (readonly [string, string])[]): Steps<string> {
  const present = replacements.filter(([character]) => text.includes(character));
  if (present.length === 0) return text;
  const parts: string[] = [];
  for (let start = 0; start < text.length;) {
    let end = Math.min(text.length, start + WINDOW_LENGTH);
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
    let window = text.slice(start, end);
    for (const [character, replacement] of present) {
      if (!window.includes(character)) continue;
      if (character.length === 1) window = replaceUnit(window, character.charCodeAt(0), replacement.charCodeAt(0));
      else window = window.replaceAll(character, replacement);
    }
    parts.push(window);
    start = end;
    yield;
  }
  return parts.join("");
}

function replaceUnit(text: string, unit: number, replacement: number): string {
  for (let i = 0; i < text.length; i++) {
    const current = text.charCodeAt(i);
    units[i] = current === unit ? replacement : current;
  }
  return String.fromCharCode(...units.subarray(0, text.length));
}

const NO_MARKS = new ContentMarks(new Map());

/** Rendering is synchronous, so one set of marks is in use at a time. */
let current = NO_MARKS;

/** Calls a function that renders content with marks. */
export function withContentMarks<Result>(marks: ContentMarks, render: () => Result): Result {
  const outer = current;
  current = marks;
  try {
    return render();
  } finally {
    current = outer;
  }
}

/** Returns a text with the original characters of content. */
export function unmarked(text: string): string {
  return current.unmark(text);
}

/**
 * Marks a text that was put together from content; its characters cannot be told from the
 * template's.
 */
export function marked(text: string): string {
  return current.mark(text);
}

/** Rewrites a text as a whole; if it has content, all of the result counts as content. */
export function rewriteMarked(text: string, rewrite: (text: string) => string): string {
  const plain = current.unmark(text);
  const rewritten = rewrite(plain);
  return plain === text ? rewritten : current.mark(rewritten);
}

/**
 * Converts a text character by character, such as to another case; marked characters stay marked.
 */
export function convertMarked(text: string, convert: (text: string) => string): string {
  const plain = current.unmark(text);
  const converted = convert(plain);
  if (plain === text) return converted;
  if (converted.length !== text.length) return current.mark(converted);
  let result = "";
  let end = 0;
  for (const position of current.findMarks(text)) {
    const [character] = converted.slice(position, position + 2);
    result += converted.slice(end, position) + current.mark(character);
    end = position + character.length;
  }
  return result + converted.slice(end);
}

/**
 * Replaces the matches of a global expression in the original text; one that stays keeps its marks.
 */
export function replaceMarked(text: string, pattern: RegExp, replace: (match: string) => string): string {
  const plain = current.unmark(text);
  if (plain === text) return text.replace(pattern, replace);
  let result = "";
  let end = 0;
  for (const { 0: match, index } of plain.matchAll(pattern)) {
    const replacement = replace(match);
    const stop = replacement === match ? index + match.length : index;
    result += text.slice(end, stop) + (replacement === match ? "" : replacement);
    end = index + match.length;
  }
  return result + text.slice(end);
}
