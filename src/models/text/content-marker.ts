import { LlamaGymError } from "../../core/errors.js";
import { escapeRegExp } from "./tokenization/compile-pattern.js";
import { type RenderedText, escapeCharacter, removeMarks, unusedNoncharacters } from "./rendered-text.js";

/** A value of a template's variables. */
type Content = unknown;

/**
 * Keeps special tokens in the content of messages from becoming control tokens: marks, before rendering, the characters
 * of content with which a special token could begin, and finds the marks in the rendered text.
 *
 * A token may also be put together from several contents, or from one that the template shortens. Therefore every first
 * character of a special token is marked, except where the template itself uses the character with the one that follows,
 * as in a test for `</think>`, and no special token begins so.
 */
export class ContentMarker {
  private readonly firstCharacters: readonly string[];
  /** Matches characters to mark; null for a tokenizer without special tokens. */
  private readonly pattern: RegExp | null;
  /** Matches the beginning of any special token that has more than one character. */
  private readonly beginnings: ReadonlySet<string>;

  constructor(
    specialTokens: readonly string[],
    private readonly source: string,
  ) {
    const tokens = specialTokens.filter((token) => token !== "");
    this.firstCharacters = Array.from(new Set(tokens.map((token) => Array.from(token)[0])));
    this.beginnings = new Set(tokens.map((token) => token.slice(0, Array.from(token)[0].length + 1)));
    this.pattern = tokens.length === 0 ? null : new RegExp(this.firstCharacters.map(escapeRegExp).join("|"), "gu");
  }

  /** Marks content. Returns undefined if there is nothing to mark. @throws TEMPLATE_FAILED if the texts use all noncharacters. */
  mark(content: Content): { readonly content: Content; readonly read: (rendered: string) => RenderedText } | undefined {
    const { pattern } = this;
    const texts = collectTexts(content);
    if (pattern === null || !texts.some((text) => this.markText(text, "\ufdd0", pattern) !== text)) return undefined;
    const [mark] = requireNoncharacters([...texts, this.source], 1);
    const marks = new RegExp(`${mark}|${escapeRegExp(escapeCharacter(mark))}`, "g");
    return {
      content: mapTexts(content, (text) => this.markText(text, mark, pattern)),
      read: (rendered) => {
        const { text, literals } = removeMarks(rendered, marks);
        // A template that drops the first character of a text leaves the mark behind a character that it wrote.
        return { text, literals: literals.filter((position) => this.isFirstCharacter(text, position)) };
      },
    };
  }

  private isFirstCharacter(text: string, position: number): boolean {
    return this.firstCharacters.some((character) => text.endsWith(character, position + 1));
  }

  private markText(text: string, mark: string, pattern: RegExp): string {
    return text.replace(pattern, (character, index: number) => {
      const pair = text.slice(index, index + character.length + 1);
      const isBeginning = this.beginnings.has(pair) || this.beginnings.has(character);
      return isBeginning || pair === character || !this.source.includes(pair) ? character + mark : character;
    });
  }
}

/** Returns noncharacters that the texts do not contain. @throws TEMPLATE_FAILED if there are too few. */
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

function mapTexts(value: Content, change: (text: string) => string): Content {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [change(key), mapTexts(item, change)]));
}
