import { type ByteAutomaton, DEAD } from "./automaton/byte-automaton.js";
import type { TokenTrie } from "./token-trie.js";

/** Visits every token that the automaton can follow from a state, with the state that it leads to. */
export function walkTokens(
  automaton: ByteAutomaton,
  trie: TokenTrie,
  state: number,
  visit: (token: number, to: number) => void,
): void {
  const { bytes, depths, ends, firstTokens, tokens, longest } = trie;
  const states = new Int32Array(longest + 1);
  states[0] = state;
  for (let node = 0; node < bytes.length;) {
    const depth = depths[node];
    const to = automaton.step(states[depth], bytes[node]);
    if (to === DEAD) {
      node = ends[node];
      continue;
    }
    states[depth + 1] = to;
    for (let i = firstTokens[node]; i < firstTokens[node + 1]; i++) visit(tokens[i], to);
    node++;
  }
}
