/**
 * Characters of a text that patterns and models see at once. A longer word, or run of whitespace or
 * symbols, is split: patterns that match millions of characters overflow the expression's stack,
 * and block everything else for seconds.
 */
export const WINDOW_LENGTH = 1 << 15;

/** Characters before a window that the pattern's lookbehinds see. */
const LOOKBEHIND_LENGTH = 64;

/**
 * A character before which a text can be cut: one that Unicode normalization never joins with the
 * one before.
 */
const isClusterStart = (character: string) => !/^[\p{M}\u1160-\u11ff]/u.test(character.normalize("NFKD"));

/**
 * Finds the matches of a global expression as `matchAll` does; each match sees at least
 * WINDOW_LENGTH characters from its start. Yields null after a window, so that callers can pause.
 */
export function* findMatches(text: string, pattern: RegExp): Generator<readonly [start: number, end: number] | null> {
  let position = 0;
  for (;;) {
    const start = alignToCharacter(text, Math.max(0, position - LOOKBEHIND_LENGTH));
    const end = alignToCharacter(text, position + 2 * WINDOW_LENGTH);
    const limit = end === text.length ? end : alignToCharacter(text, end - WINDOW_LENGTH);
    const window = text.slice(start, end);
    while (position <= limit) {
      // Other texts are searched while this generator waits.
      pattern.lastIndex = position - start;
      const match = pattern.exec(window);
      if (match === null || start + match.index > limit) break;
      const matchStart = start + match.index;
      const matchEnd = matchStart + match[0].length;
      // As `matchAll`, an empty match moves the search by one character.
      position = match[0] === "" ? matchEnd + characterLength(text, matchEnd) : matchEnd;
      yield [matchStart, matchEnd];
    }
    if (end === text.length) return;
    position = Math.max(position, limit);
    yield null;
  }
}

/**
 * Cuts a text into parts that are normalized separately to the same result; parts of at least
 * WINDOW_LENGTH may be cut anywhere.
 */
export function* cutClusters(text: string): Generator<string> {
  let start = 0;
  while (text.length - start > 2 * WINDOW_LENGTH) {
    let end = alignToCharacter(text, start + 2 * WINDOW_LENGTH);
    const min = start + WINDOW_LENGTH;
    let cut = end;
    while (cut > min && !isClusterStart(String.fromCodePoint(text.codePointAt(cut)!)))
      cut = alignToCharacter(text, cut - 1);
    if (cut > min) end = cut;
    yield text.slice(start, end);
    start = end;
  }
  if (start < text.length) yield text.slice(start);
}

/**
 * Cuts a piece that is longer than WINDOW_LENGTH into parts that a model encodes separately, where
 * possible before a word.
 */
export function cutPiece(piece: string): readonly string[] {
  if (piece.length <= WINDOW_LENGTH) return [piece];
  const parts: string[] = [];
  let start = 0;
  while (piece.length - start > WINDOW_LENGTH) {
    let end = alignToCharacter(piece, start + WINDOW_LENGTH);
    const min = end - (WINDOW_LENGTH >> 2);
    let cut = end;
    while (cut > min && !(isSpace(piece, cut) && !isSpace(piece, cut - 1))) cut--;
    if (cut > min) end = cut;
    parts.push(piece.slice(start, end));
    start = end;
  }
  parts.push(piece.slice(start));
  return parts;
}

/** Whether a character is a space, as text, in SentencePiece's or in the byte-level form. */
function isSpace(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  return unit === 0x20 || unit === 0x2581 || unit === 0x120;
}

/**
 * Returns a position at most `index` that does not split a surrogate pair; the text's length beyond
 * its end.
 */
function alignToCharacter(text: string, index: number): number {
  if (index >= text.length) return text.length;
  const isInside = index > 0 && isSurrogate(text, index, 0xdc00) && isSurrogate(text, index - 1, 0xd800);
  return isInside ? index - 1 : index;
}

/** Returns the number of UTF-16 units of the character at a position. */
export function characterLength(text: string, index: number): number {
  return isSurrogate(text, index, 0xd800) && isSurrogate(text, index + 1, 0xdc00) ? 2 : 1;
}

function isSurrogate(text: string, index: number, base: 0xd800 | 0xdc00): boolean {
  return (text.charCodeAt(index) & 0xfc00) === base;
}
