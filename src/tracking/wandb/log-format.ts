import { crc32 } from "node:zlib";

/*
 * The frame of a run file is LevelDB's log format: blocks of 32 KiB, in which records lie in pieces of [checksum:
 * uint32, length: uint16, kind: uint8, data]. The checksum is the plain CRC-32 of kind and data. A block's last bytes
 * are zeros where not even a piece's head fits. Before all that stand seven bytes that name the format.
 */
const HEAD_BYTES = 7;
const BLOCK_BYTES = 32_768;
const FILE_HEADER = Uint8Array.from([0x3a, 0x57, 0x26, 0x42, 0xe1, 0xbe, 0x00]); // ":W&B", 0xbee1, version 0

const FULL = 1;
const FIRST = 2;
const MIDDLE = 3;
const LAST = 4;

/** What stands at the beginning of a run file. */
export function fileHeader(): Uint8Array {
  return FILE_HEADER.slice();
}

/** The bytes by which a file of `size` bytes grows when `data` is appended to it as one record. */
export function framed(data: Uint8Array, size: number): Uint8Array {
  const pieces: Uint8Array[] = [];
  let room = BLOCK_BYTES - (size % BLOCK_BYTES);
  if (room < HEAD_BYTES) {
    pieces.push(new Uint8Array(room));
    room = BLOCK_BYTES;
  }
  let start = 0;
  let first = true;
  do {
    const end = Math.min(data.length, start + room - HEAD_BYTES);
    const last = end === data.length;
    pieces.push(piece(data.subarray(start, end), kindOf(first, last)));
    start = end;
    // A piece may be empty: a head just fits before the block's end.
    first = false;
    room = BLOCK_BYTES;
  } while (start < data.length);
  return Buffer.concat(pieces);
}

function kindOf(first: boolean, last: boolean): number {
  if (first) return last ? FULL : FIRST;
  return last ? LAST : MIDDLE;
}

function piece(data: Uint8Array, kind: number): Uint8Array {
  const bytes = new Uint8Array(HEAD_BYTES + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, checksum(data, kind), true);
  view.setUint16(4, data.length, true);
  bytes[6] = kind;
  bytes.set(data, HEAD_BYTES);
  return bytes;
}

function checksum(data: Uint8Array, kind: number): number {
  const start = crc32(Uint8Array.of(kind));
  // zlib forgets the start where an empty array has no memory at all.
  return data.length === 0 ? start : crc32(data, start);
}

/** A record and where in its file it ends. */
export interface FramedRecord {
  readonly data: Uint8Array;
  readonly end: number;
}

/** The records of a run file, up to the first fault: what a process that was killed has written of its last one. */
export function* recordsOf(bytes: Uint8Array): Generator<FramedRecord> {
  if (Buffer.compare(bytes.subarray(0, HEAD_BYTES), FILE_HEADER) !== 0) return;
  let parts: Uint8Array[] = [];
  let at = HEAD_BYTES;
  while (at < bytes.length) {
    const room = BLOCK_BYTES - (at % BLOCK_BYTES);
    if (room < HEAD_BYTES) {
      at += room;
      continue;
    }
    const found = pieceAt(bytes, at);
    if (found === undefined || (found.kind === FULL || found.kind === FIRST) !== (parts.length === 0)) return;
    parts.push(found.data);
    at += HEAD_BYTES + found.data.length;
    if (found.kind === FULL || found.kind === LAST) {
      yield { data: Buffer.concat(parts), end: at };
      parts = [];
    }
  }
}

function pieceAt(bytes: Uint8Array, at: number): { kind: number; data: Uint8Array } | undefined {
  if (at + HEAD_BYTES > bytes.length) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, HEAD_BYTES);
  const [length, kind] = [view.getUint16(4, true), view.getUint8(6)];
  const data = bytes.subarray(at + HEAD_BYTES, at + HEAD_BYTES + length);
  const whole = data.length === length && kind >= FULL && kind <= LAST;
  return whole && view.getUint32(0, true) === checksum(data, kind) ? { kind, data } : undefined;
}
