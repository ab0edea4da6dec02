import { LlamaGymError } from "../../core/errors.js";
import { JsonNumber, jsonEntries, jsonItems } from "../../core/lossless-json.js";
import type { Steps } from "../../core/steps.js";
import { ContentMarks } from "./jinja/content-marks.js";
import { type RenderedText, unusedNoncharacters } from "./rendered-text.js";

/** A value of a template's variables. */
type Content = unknown;

/** Marked characters between which reading a rendered text can pause. */
const MARKS_PER_STEP = 16_384;

/** Content that is ready to be rendered. */
interface MarkedContent {
  readonly contents: readonly Content[];
  readonly marks: ContentMarks;
}

/**
 * Keeps special tokens in the content of messages from becoming control tokens: replaces, before
 * rendering, the characters of content with which a special token could begin by marks, and finds
 * the marks in the rendered text.
 *
 * A token may also be put together from several contents, or from one that the template shortens or
 * writes in another case. Therefore every first character of a special token is marked, in each
 * case.
 */
export class ContentMarker {
  private readonly firstCharacters: ReadonlySet<string>;

  constructor(
    specialTokens: readonly string[],
    private readonly source: string,
  ) {
    const first = specialTokens.filter((token) => token !== "").map((token) => Array.from(token)[0]);
    this.firstCharacters = new Set(first.flatMap((character) => [character, ...otherCases(character)]));
  }

  /**
   * Marks contents, in steps. Returns undefined if there is nothing to mark. @throws
   * TEMPLATE_FAILED if too few characters are unused.
   */
  *mark(contents: readonly Content[]): Steps<MarkedContent | undefined> {
    const texts = collectTexts(contents);
    const present = [...this.firstCharacters].filter((character) => texts.some((text) => text.includes(character)));
    if (present.length === 0) return undefined;
    const available = unusedCharacters([...texts, this.source]);
    const marks = new Map<string, string>();
    // A template may change the case of content, so that all first characters have a mark.
    for (const character of this.firstCharacters) marks.set(character, nextUnused(available, character));
    const contentMarks = new ContentMarks(marks);
    const marked = new Map<string, string>();
    for (const text of new Set(texts)) marked.set(text, yield* contentMarks.markSteps(text));
    return { contents: contents.map((content) => mapTexts(content, (text) => marked.get(text)!)), marks: contentMarks };
  }
}

/**
 * Marks all characters of some messages' fields but their roles and whitespace, to find them in the
 * rendered text.
 */
export function markMessages(
  messages: readonly Readonly<Record<string, unknown>>[],
  isMarked: (field: string, index: number) => boolean,
  others: readonly string[],
): { readonly messages: readonly Record<string, unknown>[]; readonly marks: ContentMarks } {
  const isContent = (field: string, index: number) => field !== "role" && isMarked(field, index);
  const texts = messages.flatMap((message, index) =>
    Object.entries(message).flatMap(([field, value]) => (isContent(field, index) ? collectTexts(value) : [])),
  );
  const available = unusedCharacters(others);
  const marks = new Map<string, string>();
  for (const character of new Set(texts.join("").replace(/\s/g, ""))) {
    const { value, done } = available[character.length === 1 ? "one" : "two"].next();
    if (done !== true) marks.set(character, value);
  }
  const contentMarks = new ContentMarks(marks);
  const mark = ([field, value]: [string, unknown], index: number) =>
    isContent(field, index) ? mapTexts(value, (text) => contentMarks.mark(text)) : value;
  return {
    messages: messages.map((message, index) =>
      Object.fromEntries(Object.entries(message).map((entry) => [entry[0], mark(entry, index)])),
    ),
    marks: contentMarks,
  };
}

/** Reads a rendered text with marks, in steps. */
export function* readMarked(rendered: string, marks: ContentMarks): Steps<RenderedText> {
  const text = yield* marks.unmarkSteps(rendered);
  const literals: number[] = [];
  for (const position of marks.findMarks(rendered)) {
    literals.push(position);
    if (literals.length % MARKS_PER_STEP === 0) yield;
  }
  return { text, literals };
}

/** Returns the character in the other cases that take as many UTF-16 units. */
function otherCases(character: string): string[] {
  return [character.toLowerCase(), character.toUpperCase()].filter((other) => other.length === character.length);
}

/**
 * Yields characters that no text contains: noncharacters, then private-use characters, of one
 * UTF-16 unit or of two.
 */
function unusedCharacters(texts: readonly string[]): Record<"one" | "two", Iterator<string>> {
  const find = function* (ranges: readonly (readonly [first: number, last: number])[]) {
    for (const [first, last] of ranges) {
      for (let code = first; code <= last; code++) {
        const character = String.fromCodePoint(code);
        if (!texts.some((text) => text.includes(character))) yield character;
      }
    }
  };
  return {
    one: find([
      [0xfdd0, 0xfdef],
      [0xe000, 0xf8ff],
    ]),
    two: find([[0xf0000, 0xf1fff]]),
  };
}

function nextUnused(available: Record<"one" | "two", Iterator<string>>, character: string): string {
  const { value, done } = available[character.length === 1 ? "one" : "two"].next();
  if (done !== true) return value;
  throw new LlamaGymError(
    "TEMPLATE_FAILED",
    "The conversation contains all private-use characters, of which rendering needs some. Remove them.",
  );
}

/**
 * Returns noncharacters that the texts do not contain. @throws TEMPLATE_FAILED if there are too
 * few.
 */
export function requireNoncharacters(texts: readonly string[], count: number): string[] {
  const unused = unusedNoncharacters(texts);
  if (unused.length >= count) return unused.slice(0, count);
  throw new LlamaGymError(
    "TEMPLATE_FAILED",
    "The conversation contains all noncharacters (U+FDD0 to U+FDEF), of which rendering needs one. Remove them.",
  );
}

/** Returns all strings of a JSON value, keys included. */
export function collectTexts(value: Content): string[] {
  const texts: string[] = [];
  mapTexts(value, (text) => {
    texts.push(text);
    return text;
  });
  return texts;
}

/**
 * Changes all strings of a JSON value, keys included; objects become maps, which keep the order of
 * keys.
 */
function mapTexts(value: Content, change: (text: string) => string): Content {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return jsonItems(value).map((item) => mapTexts(item, change));
  if (typeof value !== "object" || value === null || value instanceof JsonNumber) return value;
  return new Map(jsonEntries(value).map(([key, item]) => [change(key), mapTexts(item, change)]));
}
