import { type Steps, runSteps } from "../../../core/steps.js";

/**
 * Characters that stand, while a template is rendered, for those characters of content with which a special token could
 * begin. Each stands for one character, so that lengths and positions agree; comparisons and searches read the original text.
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
    return runSteps(this.unmarkSteps(text));
  }

  unmarkSteps(text: string): Steps<string> {
    return replaceCharacters(text, this.fromMarks);
  }

  /** Restores the marked characters for which `isRestored` is true. */
  restore(text: string, isRestored: (character: string) => boolean): string {
    const restored = this.fromMarks.filter(([, character]) => isRestored(character));
    return runSteps(replaceCharacters(text, restored));
  }

  isMark(character: string): boolean {
    return this.marks.has(character);
  }

  /** Yields the ascending positions of the marks in a text. */
  *findMarks(text: string): Generator<number> {
    // All marks begin with a unit above the letters, which keeps the search fast.
    for (let i = 0; i < text.length; i++)
      if (text.charCodeAt(i) >= 0xd800 && this.isMark(String.fromCodePoint(text.codePointAt(i)!))) yield i;
  }
}

/** UTF-16 units that are replaced at once. */
const WINDOW_LENGTH = 8192;

const units = new Uint16Array(WINDOW_LENGTH);

/**
 * Replaces characters by others of as many UTF-16 units, in steps. Replacing millions of matches with the methods of strings
 * takes ten times as long.
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

/** Returns the marks of the content that is being rendered. */
export function contentMarks(): ContentMarks {
  return current;
}

/** Returns a text with the original characters of content. */
export function unmarked(text: string): string {
  return current.unmark(text);
}

/** Converts a text character by character, such as to another case; marked characters stay marked. */
export function convertMarked(text: string, convert: (text: string) => string): string {
  const plain = current.unmark(text);
  const converted = convert(plain);
  if (plain === text) return converted;
  if (converted.length !== text.length) return current.mark(converted);
  let marked = "";
  let end = 0;
  for (const position of current.findMarks(text)) {
    const [character] = converted.slice(position, position + 2);
    marked += converted.slice(end, position) + current.mark(character);
    end = position + character.length;
  }
  return marked + converted.slice(end);
}

/** Returns the entry of a dictionary; its keys may be content. */
export function getEntry<Value>(entries: ReadonlyMap<string, Value>, key: string): Value | undefined {
  const plain = current.unmark(key);
  return entries.get(key) ?? entries.get(plain) ?? entries.get(current.mark(plain));
}
