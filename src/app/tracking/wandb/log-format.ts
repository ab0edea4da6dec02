import { crc32 } from "node:zlib";

/*
 * Run files use LevelDB's log format: blocks of 32 KiB with records in chunks of [checksum: uint32,
 * length: uint16, kind: uint8, data]. The checksum is the plain CRC-32 of kind and data. A block
 * ends with zeros where a chunk header does not fit. A header of seven bytes precedes the first
 * block.
 */
const FRAGMENT_HEADER_BYTES = 7;
const BLOCK_BYTES = 32_768;
const FILE_HEADER = Uint8Array.from([0x3a, 0x57, 0x26, 0x42, 0xe1, 0xbe, 0x00]); // ":W&B", 0xbee1, version 0

const FULL = 1;
const FIRST = 2;
const MIDDLE = 3;
const LAST = 4;

/** Returns the header of a run file. */
export function getFileHeader(): Uint8Array {
  return FILE_HEADER.slice();
}

/** Encodes `data` as a record to append to a file of `size` bytes. */
export function frameRecord(data: Uint8Array, size: number): Uint8Array {
  const fragments: Uint8Array[] = [];
  let remaining = BLOCK_BYTES - (size % BLOCK_BYTES);
  if (remaining < FRAGMENT_HEADER_BYTES) {
    fragments.push(new Uint8Array(remaining));
    remaining = BLOCK_BYTES;
  }
  let start = 0;
  let isFirst = true;
  do {
    const end = Math.min(data.length, start + remaining - FRAGMENT_HEADER_BYTES);
    const isLast = end === data.length;
    fragments.push(encodeFragment(data.subarray(start, end), getFragmentKind(isFirst, isLast)));
    start = end;
    // A chunk may be empty, when only its header fits into the block.
    isFirst = false;
    remaining = BLOCK_BYTES;
  } while (start < data.length);
  return Buffer.concat(fragments);
}

function getFragmentKind(isFirst: boolean, isLast: boolean): number {
  if (isFirst) return isLast ? FULL : FIRST;
  return isLast ? LAST : MIDDLE;
}

function encodeFragment(data: Uint8Array, kind: number): Uint8Array {
  const bytes = new Uint8Array(FRAGMENT_HEADER_BYTES + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, computeChecksum(data, kind), true);
  view.setUint16(4, data.length, true);
  bytes[6] = kind;
  bytes.set(data, FRAGMENT_HEADER_BYTES);
  return bytes;
}

function computeChecksum(data: Uint8Array, kind: number): number {
  const start = crc32(Uint8Array.of(kind));
  // zlib ignores the starting value for an empty array without a buffer.
  return data.length === 0 ? start : crc32(data, start);
}

/** A record and the offset of its end. */
export interface FramedRecord {
  readonly data: Uint8Array;
  readonly end: number;
}

/**
 * Reads the records of a run file up to the first incomplete one, which a killed process may leave.
 */
export function* readRecords(bytes: Uint8Array): Generator<FramedRecord> {
  if (Buffer.compare(bytes.subarray(0, FRAGMENT_HEADER_BYTES), FILE_HEADER) !== 0) return;
  let parts: Uint8Array[] = [];
  let offset = FRAGMENT_HEADER_BYTES;
  while (offset < bytes.length) {
    const remaining = BLOCK_BYTES - (offset % BLOCK_BYTES);
    if (remaining < FRAGMENT_HEADER_BYTES) {
      offset += remaining;
      continue;
    }
    const fragment = decodeFragment(bytes, offset);
    if (fragment === undefined || (fragment.kind === FULL || fragment.kind === FIRST) !== (parts.length === 0)) return;
    parts.push(fragment.data);
    offset += FRAGMENT_HEADER_BYTES + fragment.data.length;
    if (fragment.kind === FULL || fragment.kind === LAST) {
      yield { data: Buffer.concat(parts), end: offset };
      parts = [];
    }
  }
}

function decodeFragment(bytes: Uint8Array, offset: number): { kind: number; data: Uint8Array } | undefined {
  if (offset + FRAGMENT_HEADER_BYTES > bytes.length) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, FRAGMENT_HEADER_BYTES);
  const [length, kind] = [view.getUint16(4, true), view.getUint8(6)];
  const data = bytes.subarray(offset + FRAGMENT_HEADER_BYTES, offset + FRAGMENT_HEADER_BYTES + length);
  const isComplete = data.length === length && kind >= FULL && kind <= LAST;
  return isComplete && view.getUint32(0, true) === computeChecksum(data, kind) ? { kind, data } : undefined;
}
