import { type ByteAutomaton, DEAD_STATE } from "./automaton/byte-automaton.js";
import { ROOT, type TokenTrie, walkTokens } from "./token-trie.js";

/**
 * Computes for each state an upper bound of the tokens still needed: `ending[state]` where the text may end, Infinity where no
 * tokens lead to an end. From a state that needs n tokens, some token leads to one that needs n - 1.
 *
 * The bound is the greedy longest-token split of the shortest text whose bytes are all tokens. If the vocabulary lacks bytes that
 * a state requires, all tokens are tried instead, which takes longer.
 */
export function computeCompletionCosts(automaton: ByteAutomaton, trie: TokenTrie, ending: Float64Array): Float64Array {
  const costs = shortestTextCosts(automaton, trie, ending);
  return costs.includes(Infinity) ? allTokenCosts(automaton, trie, ending) : costs;
}

function shortestTextCosts(automaton: ByteAutomaton, trie: TokenTrie, ending: Float64Array): Float64Array {
  const { accepting } = automaton;
  const { order, next, byte } = shortestTexts(automaton, trie);
  const costs = Float64Array.from(ending);
  // Shorter texts first: the rest after a token is shorter.
  for (const state of order) {
    if (accepting[state] === 1) continue;
    let node: number | undefined = ROOT;
    let current = state;
    let afterToken = state;
    while (accepting[current] === 0) {
      node = trie.child(node, byte[current]);
      if (node === undefined) break;
      current = next[current];
      if (trie.endsToken(node)) afterToken = current;
    }
    costs[state] = 1 + costs[afterToken];
  }
  return costs;
}

/** Finds for each state the first byte of the shortest text to an accepting state; `order` sorts the states by its length. */
function shortestTexts(
  automaton: ByteAutomaton,
  trie: TokenTrie,
): { order: number[]; next: Int32Array; byte: Uint8Array } {
  const { stateCount, accepting } = automaton;
  const bytes = tokenByteByClass(automaton, trie);
  const previous = Array.from({ length: stateCount }, (): number[] => []);
  automaton.next.forEach((to, edge) => {
    if (to !== DEAD_STATE && bytes[edge % bytes.length] !== undefined) previous[to].push(edge);
  });
  const next = new Int32Array(stateCount).fill(DEAD_STATE);
  const byte = new Uint8Array(stateCount);
  const order = Array.from({ length: stateCount }, (_, state) => state).filter((state) => accepting[state] === 1);
  for (const state of order) {
    for (const edge of previous[state]) {
      const from = Math.floor(edge / bytes.length);
      if (accepting[from] === 1 || next[from] !== DEAD_STATE) continue;
      next[from] = state;
      byte[from] = bytes[edge % bytes.length]!;
      order.push(from);
    }
  }
  return { order, next, byte };
}

/** Returns for each byte class a byte that is a token; undefined if there is none. */
function tokenByteByClass({ byteClass, representativeBytes }: ByteAutomaton, trie: TokenTrie): (number | undefined)[] {
  const tokenBytes: (number | undefined)[] = representativeBytes.map(() => undefined);
  byteClass.forEach((group, byte) => {
    const node = trie.child(ROOT, byte);
    if (node !== undefined && trie.endsToken(node)) tokenBytes[group] ??= byte;
  });
  return tokenBytes;
}

function allTokenCosts(automaton: ByteAutomaton, trie: TokenTrie, ending: Float64Array): Float64Array {
  const targets = Array.from({ length: automaton.stateCount }, (_, state) => {
    const reached = new Set<number>();
    walkTokens(automaton, trie, state, (_token, to) => reached.add(to));
    return [...reached];
  });
  const costs = Float64Array.from(ending);
  for (let changed = true; changed;) {
    changed = false;
    for (let state = automaton.stateCount - 1; state >= 0; state--) {
      for (const to of targets[state]) {
        if (costs[to] + 1 >= costs[state]) continue;
        costs[state] = costs[to] + 1;
        changed = true;
      }
    }
  }
  return costs;
}
