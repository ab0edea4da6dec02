import { type ByteAutomaton, DEAD } from "./automaton/byte-automaton.js";
import { ROOT, type TokenTrie } from "./token-trie.js";
import { walkTokens } from "./walk-tokens.js";

/**
 * For each state an upper bound of the tokens that a reply still needs: `ending[state]` where it may end there, Infinity where no
 * tokens lead to an end. From a state that needs n tokens a token leads to one that needs n - 1.
 *
 * The bound is that of the shortest text whose bytes are all tokens, cut into the longest tokens that begin it. Where a
 * vocabulary lacks bytes that a state cannot do without, all tokens are tried instead, which takes longer.
 */
export function completionCosts(automaton: ByteAutomaton, trie: TokenTrie, ending: Float64Array): Float64Array {
  const costs = costsOfShortestTexts(automaton, trie, ending);
  return costs.includes(Infinity) ? costsOverAllTokens(automaton, trie, ending) : costs;
}

function costsOfShortestTexts(automaton: ByteAutomaton, trie: TokenTrie, ending: Float64Array): Float64Array {
  const { accepting } = automaton;
  const { order, next, byte } = shortestTexts(automaton, trie);
  const costs = Float64Array.from(ending);
  // Shorter texts first: what is left behind a token is shorter.
  for (const state of order) {
    if (accepting[state] === 1) continue;
    let node: number | undefined = ROOT;
    let at = state;
    let after = state;
    while (accepting[at] === 0) {
      node = trie.child(node, byte[at]);
      if (node === undefined) break;
      at = next[at];
      if (trie.completes(node)) after = at;
    }
    costs[state] = 1 + costs[after];
  }
  return costs;
}

/** For each state the first step of the shortest text, of bytes that are tokens, to an accepting state; by that text's length. */
function shortestTexts(
  automaton: ByteAutomaton,
  trie: TokenTrie,
): { order: number[]; next: Int32Array; byte: Uint8Array } {
  const { states, accepting } = automaton;
  const bytes = writtenBytes(automaton, trie);
  const previous = Array.from({ length: states }, (): number[] => []);
  automaton.next.forEach((to, edge) => {
    if (to !== DEAD && bytes[edge % bytes.length] !== undefined) previous[to].push(edge);
  });
  const next = new Int32Array(states).fill(DEAD);
  const byte = new Uint8Array(states);
  const order = Array.from({ length: states }, (_, state) => state).filter((state) => accepting[state] === 1);
  for (const state of order) {
    for (const edge of previous[state]) {
      const from = Math.floor(edge / bytes.length);
      if (accepting[from] === 1 || next[from] !== DEAD) continue;
      next[from] = state;
      byte[from] = bytes[edge % bytes.length]!;
      order.push(from);
    }
  }
  return { order, next, byte };
}

/** For each class of bytes one that is a token; undefined where there is none. */
function writtenBytes({ classOf, byteOfClass }: ByteAutomaton, trie: TokenTrie): (number | undefined)[] {
  const written: (number | undefined)[] = byteOfClass.map(() => undefined);
  classOf.forEach((group, byte) => {
    const node = trie.child(ROOT, byte);
    if (node !== undefined && trie.completes(node)) written[group] ??= byte;
  });
  return written;
}

function costsOverAllTokens(automaton: ByteAutomaton, trie: TokenTrie, ending: Float64Array): Float64Array {
  const targets = Array.from({ length: automaton.states }, (_, state) => {
    const reached = new Set<number>();
    walkTokens(automaton, trie, state, (_token, to) => reached.add(to));
    return [...reached];
  });
  const costs = Float64Array.from(ending);
  for (let changed = true; changed;) {
    changed = false;
    for (let state = automaton.states - 1; state >= 0; state--) {
      for (const to of targets[state]) {
        if (costs[to] + 1 >= costs[state]) continue;
        costs[state] = costs[to] + 1;
        changed = true;
      }
    }
  }
  return costs;
}
