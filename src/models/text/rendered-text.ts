/** A rendered text, and where content put characters that special tokens must not cover. */
export interface RenderedText {
  readonly text: string;
  /**
   * Ascending positions of characters that belong to no special token; undefined if all special
   * tokens in the text are read.
   */
  readonly literals: readonly number[] | undefined;
}

/** Returns the text from a position on. */
export function sliceRendered({ text, literals }: RenderedText, start: number): RenderedText {
  const kept = literals?.filter((position) => position >= start);
  return { text: text.slice(start), literals: kept?.map((position) => position - start) };
}

/** Returns the text up to a position. */
export function truncateRendered({ text, literals }: RenderedText, end: number): RenderedText {
  return { text: text.slice(0, end), literals: literals?.filter((position) => position < end) };
}

/** Inserts a mark before each position. */
export function insertMarks(text: string, positions: readonly number[], mark: string): string {
  const parts = positions.map((position, i) => text.slice(positions[i - 1] ?? 0, position));
  return [...parts, text.slice(positions.at(-1) ?? 0)].join(mark);
}

/** Returns a text without marks, and the positions of the characters after them. */
export function removeMarks(marked: string, mark: string): { text: string; positions: number[] } {
  const parts = marked.split(mark);
  const positions: number[] = [];
  let end = 0;
  for (const part of parts.slice(0, -1)) positions.push((end += part.length));
  return { text: parts.join(""), positions };
}

/** Returns noncharacters that no text contains, not even escaped as in JSON; none if all occur. */
export function unusedNoncharacters(texts: readonly string[]): string[] {
  return Array.from({ length: 32 }, (_, i) => String.fromCharCode(0xfdd0 + i)).filter((character) => {
    const escape = escapeCharacter(character);
    return !texts.some((text) => text.includes(character) || text.includes(escape));
  });
}

/** Returns the JSON escape of a noncharacter, which Python's repr writes too. */
function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16)}`;
}
