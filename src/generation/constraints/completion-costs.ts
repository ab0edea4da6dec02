import { runSteps } from "../../core/steps.js";
import { type ByteAutomaton } from "./automaton/byte-automaton.js";
import { ROOT, type TokenTrie, walkTokens } from "./token-trie.js";

/**
 * Upper bounds of the tokens still needed in each state: `endingCost(state)` where the text may
 * end, Infinity where no tokens lead to an end. From a state that needs n tokens, some token leads
 * to one that needs at most n - 1.
 *
 * The bound is the greedy longest-token split of the shortest text whose bytes are all tokens. If
 * the vocabulary lacks bytes that a state requires, all tokens are tried instead, which takes
 * longer.
 */
export class CompletionCosts {
  private readonly costs: number[] = [];
  private readonly firstByte: ((state: number) => number) | undefined;

  constructor(
    private readonly automaton: ByteAutomaton,
    private readonly trie: TokenTrie,
    private readonly endingCost: (state: number) => number,
  ) {
    const usable = Uint8Array.from({ length: 256 }, (_, byte) => {
      const node = trie.child(ROOT, byte);
      return node !== undefined && trie.endsToken(node) ? 1 : 0;
    });
    this.firstByte = automaton.shortestTexts(usable);
    if (this.firstByte === undefined) this.costs = this.computeAll();
  }

  of(state: number): number {
    const path: number[] = [];
    let current = state;
    // Shorter texts first: the rest after a token is shorter.
    while (this.costs[current] === undefined) {
      if (this.automaton.accepting[current] === 1) this.costs[current] = this.endingCost(current);
      else {
        path.push(current);
        current = this.afterLongestToken(current);
      }
    }
    while (path.length > 0) {
      const previous = path.pop()!;
      this.costs[previous] = 1 + this.costs[current];
      current = previous;
    }
    return this.costs[state];
  }

  /** Returns the state after the longest token that begins the shortest text. */
  private afterLongestToken(state: number): number {
    const { automaton, trie } = this;
    let node: number | undefined = ROOT;
    let current = state;
    let afterToken = state;
    while (automaton.accepting[current] === 0) {
      const byte = this.firstByte!(current);
      node = trie.child(node, byte);
      if (node === undefined) break;
      current = automaton.step(current, byte);
      if (trie.endsToken(node)) afterToken = current;
    }
    return afterToken;
  }

  private computeAll(): number[] {
    const { automaton, trie } = this;
    runSteps(automaton.explore());
    const targets = Array.from({ length: automaton.stateCount }, (_, state) => {
      const reached = new Set<number>();
      walkTokens(automaton, trie, state, (_token, to) => reached.add(to));
      return [...reached];
    });
    const costs = targets.map((_, state) => (automaton.accepting[state] === 1 ? this.endingCost(state) : Infinity));
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
}
