import { type JsonRecord, corruptFileError } from "./tokenizer-json.js";

const utf8 = new TextEncoder();

/**
 * Byte-pair encoding (Sennrich et al. 2016): repeatedly merges the adjacent pair of lowest rank,
 * starting from characters. A heap keeps long pieces at O(n log n).
 */
export class BytePairModel {
  private readonly merges: MergeTable;
  private readonly ignoreMerges: boolean;
  private readonly prefix: string;
  private readonly suffix: string;
  private readonly unknownId: number | undefined;
  private readonly fuseUnknown: boolean;
  private readonly byteFallbackIds: readonly (number | undefined)[] | null;

  /** @param isControl whether text never becomes the token */
  constructor(
    config: JsonRecord,
    private readonly vocabulary: ReadonlyMap<string, number>,
    private readonly isControl: (id: number) => boolean = () => false,
  ) {
    this.prefix = readOptionalString(config.continuing_subword_prefix);
    this.suffix = readOptionalString(config.end_of_word_suffix);
    this.ignoreMerges = config.ignore_merges === true;
    this.fuseUnknown = config.fuse_unk === true;
    this.unknownId = typeof config.unk_token === "string" ? vocabulary.get(config.unk_token) : undefined;
    this.byteFallbackIds = config.byte_fallback === true ? byteTokenIds(vocabulary) : null;
    this.merges = new MergeTable(readMergePairs(config.merges), vocabulary, this.prefix, isControl);
  }

  /** Encodes a piece. */
  encode(piece: string): readonly number[] {
    if (this.ignoreMerges) {
      const id = this.vocabulary.get(piece);
      if (id !== undefined && !this.isControl(id)) return [id];
    }
    return this.merge(this.toSymbolIds(piece));
  }

  /** Returns the piece's characters as ids, falling back to bytes or the unknown token. */
  private toSymbolIds(piece: string): number[] {
    const characters = Array.from(piece);
    const ids: number[] = [];
    let pendingUnknown = false;
    const flush = () => {
      if (pendingUnknown && this.unknownId !== undefined) ids.push(this.unknownId);
      pendingUnknown = false;
    };
    characters.forEach((character, index) => {
      let symbol = index > 0 ? this.prefix + character : character;
      if (index === characters.length - 1) symbol += this.suffix;
      const id = this.vocabulary.get(symbol);
      if (id !== undefined) {
        flush();
        ids.push(id);
        return;
      }
      const bytes = this.byteFallbackIds && Array.from(utf8.encode(symbol), (byte) => this.byteFallbackIds?.[byte]);
      if (bytes?.every((byte) => byte !== undefined)) {
        ids.push(...bytes);
        return;
      }
      if (pendingUnknown && !this.fuseUnknown) flush();
      pendingUnknown = true;
    });
    flush();
    return ids;
  }

  private merge(ids: number[]): number[] {
    const count = ids.length;
    if (count < 2) return ids;
    const { merges } = this;
    const next = Int32Array.from({ length: count }, (_, i) => i + 1);
    const previous = Int32Array.from({ length: count }, (_, i) => i - 1);
    // Rank of the pair starting at each symbol, or -1; heap entries with another rank are outdated.
    const ranks = new Int32Array(count).fill(-1);
    const heap = new MergeHeap(count);
    const pushCandidate = (position: number) => {
      const nextPosition = next[position];
      const rank = nextPosition < count ? merges.rank(ids[position], ids[nextPosition]) : -1;
      ranks[position] = rank;
      if (rank >= 0) heap.push(rank, position);
    };
    for (let i = 0; i < count - 1; i++) pushCandidate(i);
    for (let entry = heap.pop(); entry; entry = heap.pop()) {
      const { rank, position } = entry;
      if (ranks[position] !== rank) continue;
      const removed = next[position];
      ids[position] = merges.merged[rank];
      ranks[removed] = -1;
      next[position] = next[removed];
      if (next[removed] < count) previous[next[removed]] = position;
      pushCandidate(position);
      if (previous[position] >= 0) pushCandidate(previous[position]);
    }
    const merged: number[] = [];
    for (let i = 0; i < count; i = next[i]) merged.push(ids[i]);
    return merged;
  }
}

/** Returns the ids of byte tokens <0x00> to <0xFF>, undefined where missing. */
export function byteTokenIds(vocabulary: ReadonlyMap<string, number>): (number | undefined)[] {
  return Array.from({ length: 256 }, (_, byte) =>
    vocabulary.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
  );
}

function readOptionalString(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Merges are pairs, or strings separated by a space in older files. */
function readMergePairs(merges: unknown): [string, string][] {
  if (!Array.isArray(merges)) throw corruptFileError('tokenizer.json: the BPE model has no list of "merges".');
  return merges.map((merge: unknown, index): [string, string] => {
    if (typeof merge === "string") {
      const space = merge.indexOf(" ");
      if (space > 0) return [merge.slice(0, space), merge.slice(space + 1)];
    } else if (Array.isArray(merge) && merge.length === 2) {
      const [left, right]: unknown[] = merge;
      if (typeof left === "string" && typeof right === "string") return [left, right];
    }
    throw corruptFileError(`tokenizer.json: merge ${index} is ${JSON.stringify(merge)}, not a pair of tokens.`);
  });
}

/** Rank and result of each merge by pair of token ids, in an open-addressing hash table. */
class MergeTable {
  /** Resulting token by rank. */
  readonly merged: Int32Array;
  private readonly mask: number;
  private readonly slots: Int32Array;
  private readonly lefts: Int32Array;
  private readonly rights: Int32Array;

  constructor(
    pairs: readonly (readonly [string, string])[],
    vocabulary: ReadonlyMap<string, number>,
    prefix: string,
    isControl: (id: number) => boolean,
  ) {
    let capacity = 16;
    while (capacity < pairs.length * 2) capacity *= 2;
    this.mask = capacity - 1;
    this.slots = new Int32Array(capacity).fill(-1);
    this.merged = new Int32Array(pairs.length);
    this.lefts = new Int32Array(pairs.length);
    this.rights = new Int32Array(pairs.length);
    const getId = (token: string, rank: number) => {
      const found = vocabulary.get(token);
      if (found === undefined)
        throw corruptFileError(
          `tokenizer.json: merge ${rank} uses ${JSON.stringify(token)}, which is not in the vocabulary.`,
        );
      return found;
    };
    pairs.forEach(([left, right], rank) => {
      const tail = prefix && right.startsWith(prefix) ? right.slice(prefix.length) : right;
      this.lefts[rank] = getId(left, rank);
      this.rights[rank] = getId(right, rank);
      this.merged[rank] = getId(left + tail, rank);
      if (isControl(this.merged[rank])) return;
      // A duplicate pair takes its last rank, as in a dictionary filled in order.
      this.slots[this.findSlot(this.lefts[rank], this.rights[rank])] = rank;
    });
  }

  /** Returns the rank of merging two adjacent tokens, or -1. */
  rank(left: number, right: number): number {
    return this.slots[this.findSlot(left, right)];
  }

  /** Returns the slot of a pair, or a free one. */
  private findSlot(left: number, right: number): number {
    let hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca77);
    hash ^= hash >>> 15;
    let slot = hash & this.mask;
    for (;;) {
      const rank = this.slots[slot];
      if (rank < 0 || (this.lefts[rank] === left && this.rights[rank] === right)) return slot;
      slot = (slot + 1) & this.mask;
    }
  }
}

/** A merge candidate: its rank and the position of its first symbol. */
interface MergeCandidate {
  readonly rank: number;
  readonly position: number;
}

/** A binary heap of merge candidates by rank, then position. */
class MergeHeap {
  private readonly keys: number[] = [];

  /**
   * @param positions exclusive upper bound of positions; rank and position share one number, exact
   * up to 2^53
   */
  constructor(private readonly positionCount: number) {}

  push(rank: number, position: number): void {
    const { keys } = this;
    const key = rank * this.positionCount + position;
    let index = keys.length;
    keys.push(key);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (keys[parent] <= key) break;
      keys[index] = keys[parent];
      index = parent;
    }
    keys[index] = key;
  }

  pop(): MergeCandidate | null {
    const { keys } = this;
    const last = keys.pop();
    if (last === undefined) return null;
    const top = keys.length > 0 ? keys[0] : last;
    if (keys.length > 0) this.siftDown(last);
    return { rank: Math.floor(top / this.positionCount), position: top % this.positionCount };
  }

  /** Replaces the top and restores the order. */
  private siftDown(key: number): void {
    const { keys } = this;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= keys.length) break;
      if (child + 1 < keys.length && keys[child + 1] < keys[child]) child++;
      if (keys[child] >= key) break;
      keys[index] = keys[child];
      index = child;
    }
    keys[index] = key;
  }
}
