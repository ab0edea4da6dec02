import { compareBytes } from "../../core/bytes.js";
import { type ByteAutomaton, DEAD_STATE } from "./automaton/byte-automaton.js";

/** A token and its bytes. */
export interface VocabularyToken {
  readonly id: number;
  readonly bytes: Uint8Array;
}

const NO_TOKENS = new Int32Array(0);

/** The root, which is not among the nodes. */
export const ROOT = -1;

/**
 * A trie over the bytes of a vocabulary's tokens, with its nodes (prefixes of tokens) in
 * depth-first order: one loop visits all nodes that an automaton accepts and skips the other
 * subtrees.
 */
export class TokenTrie {
  /** [nodes]: the byte that leads to the node. */
  readonly bytes: Uint8Array;
  /** [nodes]: the number of bytes before that one. */
  readonly depths: Uint16Array;
  /** [nodes]: the first node after the node's subtree. */
  readonly ends: Int32Array;
  /** `tokens` from tokenOffsets[i] up to tokenOffsets[i + 1] end at node i. */
  readonly tokenOffsets: Int32Array;
  readonly tokens: Int32Array;
  /** Length of the longest token in bytes. */
  readonly maxTokenBytes: number;
  private readonly rootChildren: (number | undefined)[] = [];

  /** Every token must have at least one byte. */
  constructor(vocabulary: readonly VocabularyToken[]) {
    const sorted = [...vocabulary].sort((a, b) => compareBytes(a.bytes, b.bytes) || a.id - b.id);
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
      // A token with the same bytes as the previous one adds no node and ends at the last one.
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

  /** Returns the child of a node or of ROOT for a byte; undefined if there is none. */
  child(node: number, byte: number): number | undefined {
    if (node === ROOT) return this.rootChildren[byte];
    for (let child = node + 1; child < this.ends[node]; child = this.ends[child])
      if (this.bytes[child] === byte) return child;
    return undefined;
  }

  /** Returns the tokens that begin with a byte. */
  tokensFrom(byte: number): Int32Array {
    const node = this.rootChildren[byte];
    return node === undefined
      ? NO_TOKENS
      : this.tokens.subarray(this.tokenOffsets[node], this.tokenOffsets[this.ends[node]]);
  }

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

/** Visits every token that the automaton accepts in a state, with the state that it leads to. */
export function walkTokens(
  automaton: ByteAutomaton,
  trie: TokenTrie,
  state: number,
  visit: (token: number, to: number) => void,
): void {
  const { bytes, depths, ends, tokenOffsets, tokens, maxTokenBytes } = trie;
  const states = new Int32Array(maxTokenBytes + 1);
  states[0] = state;
  for (let node = 0; node < bytes.length;) {
    const depth = depths[node];
    const to = automaton.step(states[depth], bytes[node]);
    if (to === DEAD_STATE) {
      node = ends[node];
      continue;
    }
    states[depth + 1] = to;
    for (let i = tokenOffsets[node]; i < tokenOffsets[node + 1]; i++) visit(tokens[i], to);
    node++;
  }
}
