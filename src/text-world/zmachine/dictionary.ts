import type { TextCodec } from "./text-codec.js";

const SPACE = 32;
const KEY_BYTES = 6;

/**
 * A story's dictionary: separator characters, and the entry of each word (Standard, section 13).
 */
export class Dictionary {
  private readonly separators: ReadonlySet<number>;
  private readonly entries = new Map<string, number>();

  constructor(memory: Uint8Array, address: number) {
    const separators = memory[address];
    this.separators = new Set(memory.subarray(address + 1, address + 1 + separators));
    const entryLength = memory[address + 1 + separators];
    const countAt = address + 2 + separators;
    // A negative count marks unsorted words, which a map does not need to distinguish.
    const count = Math.abs((((memory[countAt] << 8) | memory[countAt + 1]) << 16) >> 16);
    for (let i = 0; i < count; i++) {
      const entry = countAt + 2 + i * entryLength;
      if (entryLength < KEY_BYTES || entry + KEY_BYTES > memory.length) break;
      const key = memory.subarray(entry, entry + KEY_BYTES).join(",");
      if (!this.entries.has(key)) this.entries.set(key, entry);
    }
  }

  get size(): number {
    return this.entries.size;
  }

  /** Splits a ZSCII line into words, with start, length and entry, 0 for an unknown word. */
  split(line: Uint8Array, codec: TextCodec): { start: number; length: number; entry: number }[] {
    const words: { start: number; length: number; entry: number }[] = [];
    const add = (start: number, end: number) => {
      const key = codec.encodeWord(line.subarray(start, end)).join(",");
      words.push({ start, length: end - start, entry: this.entries.get(key) ?? 0 });
    };
    let start = -1;
    for (let i = 0; i <= line.length; i++) {
      const isSeparator = i < line.length && this.separators.has(line[i]);
      if (i === line.length || line[i] === SPACE || isSeparator) {
        if (start >= 0) add(start, i);
        start = -1;
        if (isSeparator) add(i, i + 1);
      } else if (start < 0) start = i;
    }
    return words;
  }
}
