/** A rendered text, and where content put characters that special tokens must not cover. */
export interface RenderedText {
  readonly text: string;
  /** Ascending positions of characters that belong to no special token. */
  readonly literals: readonly number[];
}

/** Returns the text from a position on. */
export function sliceRendered({ text, literals }: RenderedText, start: number): RenderedText {
  const kept = literals.filter((position) => position >= start);
  return { text: text.slice(start), literals: kept.map((position) => position - start) };
}

/** Returns a text without marks, and the positions of the characters before them. `mark` matches a mark. */
export function removeMarks(marked: string, mark: RegExp): RenderedText {
  const literals: number[] = [];
  let text = "";
  let end = 0;
  for (const match of marked.matchAll(mark)) {
    text += marked.slice(end, match.index);
    if (text !== "" && literals.at(-1) !== text.length - 1) literals.push(text.length - 1);
    end = match.index + match[0].length;
  }
  return { text: text + marked.slice(end), literals };
}

/** Inserts a mark after each literal character. */
export function insertMarks({ text, literals }: RenderedText, mark: string): string {
  let marked = "";
  let end = 0;
  for (const position of literals) {
    marked += text.slice(end, position + 1) + mark;
    end = position + 1;
  }
  return marked + text.slice(end);
}

/** Returns noncharacters that no text contains, not even escaped as in JSON; none if all occur. */
export function unusedNoncharacters(texts: readonly string[]): string[] {
  return Array.from({ length: 32 }, (_, i) => String.fromCharCode(0xfdd0 + i)).filter((character) => {
    const escape = escapeCharacter(character);
    return !texts.some((text) => text.includes(character) || text.includes(escape));
  });
}

/** Returns the JSON escape of a noncharacter, which Python's repr writes too. */
export function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16)}`;
}
