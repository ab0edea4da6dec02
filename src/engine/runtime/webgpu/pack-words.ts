import { toWords } from "../../gpu/words.js";
import type { Tensor } from "../../tensor/tensor.js";
import { defineKernel } from "./define-kernel.js";

/**
 * Steps of segments that are copied: words of the data, or halves of them. No progression has these
 * steps.
 */
const COPY = 0x80000000;
const COPY_HALVES = 0x80000001;
/** Words of a segment: first target word, first value or index in the data, and step. */
export const SEGMENT_WORDS = 3;
/** Words from which on a progression is shorter than its words. */
const MIN_PROGRESSION = 6;
const THREADS = 64;

/** Words to send, with the target word that they begin at. */
export interface WordRange {
  readonly words: Uint32Array;
  readonly start: number;
  /** Words of a row, where rows may recur; 0 if they do not. */
  readonly rowWords: number;
}

/** Returns a tensor's words; rows of numbers, such as rotary embeddings, may recur. */
export function toWordRange({ dtype, shape, data }: Tensor, start: number): WordRange {
  const hasRows = dtype === "float32" && shape.length === 2 && shape[1] > 1;
  return { words: toWords(dtype, data), start, rowWords: hasRows ? shape[1] : 0 };
}

/** Words as segments followed by data. */
export interface PackedWords {
  readonly words: Uint32Array<ArrayBuffer>;
  readonly segments: number;
}

/**
 * Packs words for the bus: arithmetic progressions, such as indices and positions, become three
 * words, recurring rows, such as rotary embeddings, are sent once, and small numbers take half a
 * word. Ranges are in the order of their starts.
 */
export function packWords(ranges: readonly WordRange[]): PackedWords {
  const packer = new Packer();
  for (const range of ranges) {
    if (range.rowWords > 0) packer.addRows(range);
    else packer.addWords(range);
  }
  return packer.finish();
}

class Packer {
  private readonly segments: number[] = [];
  private readonly data: number[] = [];
  private readonly rows = new Map<number, number[]>();

  /** Adds rows, of which equal ones are sent once. */
  addRows({ words, start, rowWords }: WordRange): void {
    for (let row = 0; row < words.length; row += rowWords) {
      const values = words.subarray(row, row + rowWords);
      this.addCopy(start + row, this.findRow(values));
    }
  }

  private findRow(values: Uint32Array): number {
    const hash = values.reduce((sum, value) => Math.imul(sum ^ value, 0x01000193) >>> 0, values.length);
    const known = this.rows.get(hash) ?? [];
    this.rows.set(hash, known);
    const same = known.find((at) => values.every((value, i) => this.data[at + i] === value));
    if (same !== undefined) return same;
    const at = this.data.length;
    for (const value of values) this.data.push(value);
    known.push(at);
    return at;
  }

  private addCopy(start: number, at: number): void {
    const [lastStart, lastAt, lastStep] = this.segments.slice(-SEGMENT_WORDS);
    if (lastStep === COPY && start - lastStart === at - lastAt) return;
    this.segments.push(start, at, COPY);
  }

  addWords({ words, start }: WordRange): void {
    let literal = 0;
    for (let i = 0; i < words.length;) {
      const end = progressionEnd(words, i);
      if (end - i >= MIN_PROGRESSION) {
        this.addLiteral(words.subarray(literal, i), start + literal);
        this.segments.push(start + i, words[i], (words[i + 1] - words[i]) >>> 0);
        literal = end;
        i = end;
      } else {
        // The last word may begin the next progression.
        i = Math.max(i + 1, end - 1);
      }
    }
    this.addLiteral(words.subarray(literal), start + literal);
  }

  private addLiteral(words: Uint32Array, start: number): void {
    if (words.length === 0) return;
    const at = this.data.length;
    if (words.some((value) => value > 0xffff)) {
      for (const value of words) this.data.push(value);
      this.segments.push(start, at, COPY);
      return;
    }
    for (let i = 0; i < words.length; i += 2) this.data.push((words[i] | ((words[i + 1] ?? 0) << 16)) >>> 0);
    this.segments.push(start, 2 * at, COPY_HALVES);
  }

  finish(): PackedWords {
    return {
      words: Uint32Array.from([...this.segments, ...this.data]),
      segments: this.segments.length / SEGMENT_WORDS,
    };
  }
}

/** Returns where the arithmetic progression that begins at a word ends. */
function progressionEnd(words: Uint32Array, start: number): number {
  if (start + 1 >= words.length) return words.length;
  const step = (words[start + 1] - words[start]) >>> 0;
  if (step === COPY || step === COPY_HALVES) return start + 1;
  let end = start + 2;
  while (end < words.length && (words[end] - words[end - 1]) >>> 0 === step) end++;
  return end;
}

/** Unpacks words; its parameters are the words, the segments, and where the data begin. */
export const UNPACK = defineKernel(
  "unpack",
  THREADS,
  [
    ["packed_words", "read", "i32"],
    ["target_words", "write", "i32"],
  ],
  `let i = group * ${THREADS}u + thread;
   if (i >= $0) { return; }
   var low = 0u; var high = $1;
   while (high - low > 1u) {
     let middle = (low + high) / 2u;
     if (u32(packed_words(middle * ${SEGMENT_WORDS}u)) <= i) { low = middle; } else { high = middle; }
   }
   let at = i - u32(packed_words(low * ${SEGMENT_WORDS}u));
   let base = u32(packed_words(low * ${SEGMENT_WORDS}u + 1u));
   let step = u32(packed_words(low * ${SEGMENT_WORDS}u + 2u));
   var value = base + at * step;
   if (step == ${COPY}u) { value = u32(packed_words($2 + base + at)); }
   if (step == ${COPY_HALVES}u) {
     let half = base + at;
     value = (u32(packed_words($2 + half / 2u)) >> (half % 2u * 16u)) & 65535u;
   }
   set_target_words(i, i32(value));`,
);

/** Workgroups that unpack a number of words. */
export function unpackGroups(words: number): number {
  return Math.ceil(words / THREADS);
}
