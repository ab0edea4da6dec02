import type { Nfa } from "./nfa.js";

/** The stack outside of all rules. */
export const EMPTY_STACK = 0;

/**
 * The rules that enclose a position, as numbers: each stack is a state to return to at the end of
 * the innermost rule, and the stack outside of it. Values may be nested in themselves to a limited
 * depth.
 */
export class RuleStacks {
  readonly hasRecursion: boolean;
  private readonly parents = [EMPTY_STACK];
  private readonly returnStates = [0];
  private readonly depths = [0];
  private readonly numbers = new Map<number, number>();
  /** [rules]: rules that contain each other have the same number. */
  private readonly components: Int32Array;

  constructor(
    private readonly nfa: Nfa,
    readonly maxDepth: number,
  ) {
    this.components = strongComponents(nfa);
    this.hasRecursion = nfa.ruleEdges.some((edges, from) => edges.some(({ rule }) => this.isRecursive(rule, from)));
  }

  /** Returns whether a rule is a value that contains itself, and a state is in it. */
  isRecursive(rule: number, from: number): boolean {
    return this.nfa.rules[rule].isValue && this.components[rule] === this.components[this.nfa.ruleOf[from]];
  }

  /** Returns the stack inside a rule that a state enters; undefined beyond the maximum depth. */
  push(stack: number, from: number, { rule, to }: { readonly rule: number; readonly to: number }): number | undefined {
    const key = stack * this.nfa.stateCount + to;
    let number = this.numbers.get(key);
    if (number === undefined) {
      const depth = this.depths[stack] + (this.isRecursive(rule, from) ? 1 : 0);
      if (depth > this.maxDepth) return undefined;
      this.parents.push(stack);
      this.returnStates.push(to);
      number = this.depths.push(depth) - 1;
      this.numbers.set(key, number);
    }
    return number;
  }

  parent(stack: number): number {
    return this.parents[stack];
  }

  returnState(stack: number): number {
    return this.returnStates[stack];
  }

  /** Returns how often values are nested in themselves. */
  depth(stack: number): number {
    return this.depths[stack];
  }
}

/**
 * Returns for each rule the number of its strongly connected component (Tarjan 1972, without
 * recursion).
 */
function strongComponents(nfa: Nfa): Int32Array {
  const count = nfa.rules.length;
  const targets = Array.from({ length: count }, () => new Set<number>());
  nfa.ruleEdges.forEach((edges, from) => {
    for (const { rule } of edges) targets[nfa.ruleOf[from]].add(rule);
  });
  const index = new Int32Array(count).fill(-1);
  const low = new Int32Array(count);
  const components = new Int32Array(count).fill(-1);
  const open: number[] = [];
  let visited = 0;
  for (let root = 0; root < count; root++) {
    if (index[root] >= 0) continue;
    const path = [{ rule: root, rest: targets[root].values() }];
    index[root] = low[root] = visited++;
    open.push(root);
    while (path.length > 0) {
      const { rule, rest } = path[path.length - 1];
      const { done, value: target } = rest.next();
      if (done !== true) {
        if (index[target] < 0) {
          index[target] = low[target] = visited++;
          open.push(target);
          path.push({ rule: target, rest: targets[target].values() });
        } else if (components[target] < 0) low[rule] = Math.min(low[rule], index[target]);
        continue;
      }
      path.pop();
      if (path.length > 0) {
        const { rule: parent } = path[path.length - 1];
        low[parent] = Math.min(low[parent], low[rule]);
      }
      if (low[rule] < index[rule]) continue;
      for (let member = -1; member !== rule;) {
        member = open.pop()!;
        components[member] = rule;
      }
    }
  }
  return components;
}
