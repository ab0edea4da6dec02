import { corruptFileError } from "./tokenizer-json.js";

/** Rank and result of each merge by pair of token ids, in an open-addressing hash table. */
export class MergeTable {
  /** Resulting token by rank. */
  readonly merged: Int32Array;
  private readonly mask: number;
  private readonly slots: Int32Array;
  private readonly lefts: Int32Array;
  private readonly rights: Int32Array;

  constructor(pairs: readonly (readonly [string, string])[], vocabulary: ReadonlyMap<string, number>, prefix: string) {
    let capacity = 16;
    while (capacity < pairs.length * 2) capacity *= 2;
    this.mask = capacity - 1;
    this.slots = new Int32Array(capacity).fill(-1);
    this.merged = new Int32Array(pairs.length);
    this.lefts = new Int32Array(pairs.length);
    this.rights = new Int32Array(pairs.length);
    const getId = (token: string, rank: number) => {
      const found = vocabulary.get(token);
      if (found === undefined) {
        throw corruptFileError(
          `tokenizer.json: merge ${rank} uses ${JSON.stringify(token)}, which is not in the vocabulary.`,
        );
      }
      return found;
    };
    pairs.forEach(([left, right], rank) => {
      const tail = prefix && right.startsWith(prefix) ? right.slice(prefix.length) : right;
      this.lefts[rank] = getId(left, rank);
      this.rights[rank] = getId(right, rank);
      this.merged[rank] = getId(left + tail, rank);
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
