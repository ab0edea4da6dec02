/** A token and the bytes that it writes. */
export interface VocabularyToken {
  readonly id: number;
  readonly bytes: Uint8Array;
}

/** Stands for the node above all others. */
export const ROOT = -1;

/**
 * A vocabulary by the bytes of its tokens, as a trie laid out flat: its nodes (prefixes of tokens) in the order of a walk that
 * goes down first, so that one loop follows all that an automaton can follow and leaps over the rest.
 */
export class TokenTrie {
  /** For each node the byte that leads to it. */
  readonly bytes: Uint8Array;
  /** For each node how many bytes come before that one. */
  readonly depths: Uint16Array;
  /** For each node the first one behind it that is not below it. */
  readonly ends: Int32Array;
  /** Node i completes the tokens from firstTokens[i] up to firstTokens[i + 1]. */
  readonly tokenOffsets: Int32Array;
  readonly tokens: Int32Array;
  /** Bytes of the longest token. */
  readonly maxTokenBytes: number;
  private readonly rootChildren: (number | undefined)[] = [];

  /** Every token writes at least one byte. */
  constructor(vocabulary: readonly VocabularyToken[]) {
    const sorted = [...vocabulary].sort((a, b) => Buffer.compare(a.bytes, b.bytes) || a.id - b.id);
    const bytes: number[] = [];
    const depths: number[] = [];
    const counts: number[] = [];
    let previous = new Uint8Array();
    let maxTokenBytes = 0;
    for (const token of sorted) {
      for (let depth = commonLength(previous, token.bytes); depth < token.bytes.length; depth++) {
        bytes.push(token.bytes[depth]);
        depths.push(depth);
        counts.push(0);
      }
      // Of equal tokens the second adds no node, and completes the last one as well.
      counts[counts.length - 1]++;
      previous = Uint8Array.from(token.bytes);
      maxTokenBytes = Math.max(maxTokenBytes, token.bytes.length);
    }
    this.bytes = Uint8Array.from(bytes);
    this.depths = Uint16Array.from(depths);
    this.ends = subtreeEnds(depths);
    this.tokenOffsets = new Int32Array(counts.length + 1);
    counts.forEach((count, node) => {
      this.tokenOffsets[node + 1] = this.tokenOffsets[node] + count;
    });
    this.tokens = Int32Array.from(sorted, ({ id }) => id);
    this.maxTokenBytes = maxTokenBytes;
    for (let node = 0; node < bytes.length; node = this.ends[node]) this.rootChildren[bytes[node]] = node;
  }

  /** The node below another, or below ROOT, along a byte; undefined where there is none. */
  child(node: number, byte: number): number | undefined {
    if (node === ROOT) return this.rootChildren[byte];
    for (let child = node + 1; child < this.ends[node]; child = this.ends[child])
      if (this.bytes[child] === byte) return child;
    return undefined;
  }

  /** Whether a token ends at a node. */
  endsToken(node: number): boolean {
    return this.tokenOffsets[node + 1] > this.tokenOffsets[node];
  }
}

function subtreeEnds(depths: readonly number[]): Int32Array {
  const ends = new Int32Array(depths.length);
  const openNodes: number[] = [];
  depths.forEach((depth, node) => {
    while (openNodes.length > depth) ends[openNodes.pop()!] = node;
    openNodes.push(node);
  });
  for (const node of openNodes) ends[node] = depths.length;
  return ends;
}

function commonLength(a: Uint8Array, b: Uint8Array): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}
