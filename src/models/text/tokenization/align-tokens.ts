/** Token position in the text: [start, end) in UTF-16 units. */
export type Offset = readonly [start: number, end: number];

/** A base character with marks that Unicode normalization may merge into it. */
const clusterPattern = /[^\p{M}\u1160-\u11ff][\p{M}\u1160-\u11ff]*|[\p{M}\u1160-\u11ff]+/gsu;
const space = 0x20;

/**
 * Aligns tokens with the text they encode. `read` returns the bytes that tokens have for a small
 * part of the text. Dropped text belongs to no token; a token without matching text (an unknown
 * character) gets the text before the next token.
 */
export function alignTokens(text: string, pieces: readonly Uint8Array[], readPart: (part: string) => string): Offset[] {
  const { bytes, starts, ends } = encodeText(text, readPart);
  const offsets: [number, number][] = [];
  let position = 0;
  let unalignedCount = 0;
  for (const piece of pieces) {
    const match = findPiece(bytes, position, piece, unalignedCount > 0);
    if (!match) {
      unalignedCount++;
      offsets.push([-1, -1]);
      continue;
    }
    fillUnaligned(
      offsets,
      unalignedCount,
      getCharacterPosition(starts, position, text.length),
      getCharacterPosition(starts, match.start, text.length),
    );
    unalignedCount = 0;
    const start = getCharacterPosition(starts, match.start, text.length);
    // A space added before the text belongs to the first character.
    const last = match.end > match.start ? match.end - 1 : match.start;
    offsets.push([start, piece.length > 0 && last < ends.length ? ends[last] : start]);
    position = match.end;
  }
  fillUnaligned(offsets, unalignedCount, getCharacterPosition(starts, position, text.length), text.length);
  return offsets;
}

/** Returns the text's bytes as tokens represent them, with the text position of each byte. */
function encodeText(text: string, readPart: (part: string) => string) {
  const utf8 = new TextEncoder();
  const bytes: number[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  const add = (start: number, end: number, encoded: string) => {
    for (const byte of utf8.encode(encoded)) {
      bytes.push(byte);
      starts.push(start);
      ends.push(end);
    }
  };
  for (const { 0: part, index } of text.matchAll(clusterPattern)) {
    const characters = Array.from(part);
    const encoded = characters.map(readPart);
    const whole = characters.length === 1 ? encoded[0] : readPart(part);
    if (characters.length > 1 && encoded.join("") !== whole) {
      add(index, index + part.length, whole);
      continue;
    }
    let start = index;
    characters.forEach((character, i) => add(start, (start += character.length), encoded[i]));
  }
  return { bytes: Uint8Array.from(bytes), starts, ends };
}

/** @param skipped whether text of unknown length precedes the piece */
function findPiece(bytes: Uint8Array, position: number, piece: Uint8Array, hasGap: boolean) {
  if (piece.length === 0) return { start: position, end: position };
  if (!hasGap) {
    if (startsWithAt(bytes, position, piece)) return { start: position, end: position + piece.length };
    if (piece[0] === space && startsWithAt(bytes, position, piece.subarray(1)))
      return { start: position, end: position + piece.length - 1 };
  }
  let start = bytes.indexOf(piece[0], hasGap ? position + 1 : position);
  while (start >= 0 && !startsWithAt(bytes, start, piece)) start = bytes.indexOf(piece[0], start + 1);
  return start < 0 ? null : { start, end: start + piece.length };
}

function startsWithAt(bytes: Uint8Array, position: number, piece: Uint8Array): boolean {
  if (position + piece.length > bytes.length) return false;
  for (let i = 0; i < piece.length; i++) if (bytes[position + i] !== piece[i]) return false;
  return true;
}

function getCharacterPosition(starts: readonly number[], position: number, length: number): number {
  return position < starts.length ? starts[position] : length;
}

function fillUnaligned(offsets: [number, number][], count: number, start: number, end: number): void {
  for (let i = offsets.length - count; i < offsets.length; i++) offsets[i] = [start, Math.max(start, end)];
}
