/** Where a token lies in the text: [start, end) in UTF-16 units. */
export type Offset = readonly [start: number, end: number];

/** A base character with the marks that a Unicode normal form may merge into it. */
const cluster = /[^\p{M}\u1160-\u11ff][\p{M}\u1160-\u11ff]*|[\p{M}\u1160-\u11ff]+/gsu;
const space = 0x20;

/**
 * Finds the place of each token in the text that they encode.
 * `read` gives what the tokens' bytes spell for a small part of the text: its normal form, with spaces as spaces. Text that the tokenizer dropped belongs to no token, and a token that does not spell its
 * text (an unknown character) gets what lies before the next token.
 */
export function alignTokens(text: string, pieces: readonly Uint8Array[], read: (part: string) => string): Offset[] {
  const { bytes, starts, ends } = spell(text, read);
  const offsets: [number, number][] = [];
  let position = 0;
  let unplaced = 0;
  for (const piece of pieces) {
    const place = findPiece(bytes, position, piece, unplaced > 0);
    if (!place) {
      unplaced++;
      offsets.push([-1, -1]);
      continue;
    }
    fillUnplaced(offsets, unplaced, charAt(starts, position, text.length), charAt(starts, place.start, text.length));
    unplaced = 0;
    const start = charAt(starts, place.start, text.length);
    // A space put in front of the text counts to the character that it stands before.
    const last = place.end > place.start ? place.end - 1 : place.start;
    offsets.push([start, piece.length > 0 && last < ends.length ? ends[last] : start]);
    position = place.end;
  }
  fillUnplaced(offsets, unplaced, charAt(starts, position, text.length), text.length);
  return offsets;
}

/** The text's bytes as tokens spell them, and for each byte the part of the text that it comes from. */
function spell(text: string, read: (part: string) => string) {
  const utf8 = new TextEncoder();
  const bytes: number[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  const add = (start: number, end: number, spelled: string) => {
    for (const byte of utf8.encode(spelled)) {
      bytes.push(byte);
      starts.push(start);
      ends.push(end);
    }
  };
  for (const { 0: part, index } of text.matchAll(cluster)) {
    const characters = Array.from(part);
    const spelled = characters.map(read);
    const whole = characters.length === 1 ? spelled[0] : read(part);
    if (characters.length > 1 && spelled.join("") !== whole) {
      add(index, index + part.length, whole);
      continue;
    }
    let start = index;
    characters.forEach((character, i) => add(start, (start += character.length), spelled[i]));
  }
  return { bytes: Buffer.from(bytes), starts, ends };
}

/** `skipped`: text of unknown length lies between the position and the piece. */
function findPiece(bytes: Buffer, position: number, piece: Uint8Array, skipped: boolean) {
  if (piece.length === 0) return { start: position, end: position };
  if (!skipped) {
    if (matches(bytes, position, piece)) return { start: position, end: position + piece.length };
    if (piece[0] === space && matches(bytes, position, piece.subarray(1))) {
      return { start: position, end: position + piece.length - 1 };
    }
  }
  const found = bytes.indexOf(piece, skipped ? position + 1 : position);
  return found < 0 ? null : { start: found, end: found + piece.length };
}

function matches(bytes: Buffer, position: number, piece: Uint8Array): boolean {
  if (position + piece.length > bytes.length) return false;
  for (let i = 0; i < piece.length; i++) if (bytes[position + i] !== piece[i]) return false;
  return true;
}

function charAt(starts: readonly number[], position: number, length: number): number {
  return position < starts.length ? starts[position] : length;
}

function fillUnplaced(offsets: [number, number][], count: number, start: number, end: number): void {
  for (let i = offsets.length - count; i < offsets.length; i++) offsets[i] = [start, Math.max(start, end)];
}
