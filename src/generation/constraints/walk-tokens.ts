import { type ByteAutomaton, DEAD_STATE } from "./automaton/byte-automaton.js";
import type { TokenTrie } from "./token-trie.js";

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
