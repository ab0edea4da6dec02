import type { Steps } from "../../../core/steps.js";
import type { Nfa } from "./nfa.js";
import type { RuleStacks } from "./rule-stacks.js";

/**
 * Maximum length of a shortest text in bytes; a schema whose parts each contain others twice has
 * longer ones.
 */
const MAX_LENGTH = 1_000_000;

/** States that are visited at once, in a few milliseconds. */
const STATES_PER_STEP = 10_000;

/** Whether a byte may be used, by byte. */
export type UsableBytes = Uint8Array;

/**
 * The lengths in bytes of the shortest texts that lead from a state to the end of its rule, if
 * values may still be nested in themselves to a depth; Infinity where there is none. Greater depths
 * only make texts shorter, soon none, so there are few tables.
 */
export class ShortestLengths {
  /** [depths][states] */
  private readonly tables: Float64Array[] = [];
  private readonly stackLengths: number[] = [0];
  private readonly nextUsable: Int16Array;

  private constructor(
    private readonly nfa: Nfa,
    private readonly stacks: RuleStacks,
    usable: UsableBytes,
  ) {
    this.nextUsable = nextUsableBytes(usable);
  }

  static *build(nfa: Nfa, stacks: RuleStacks, usable: UsableBytes): Steps<ShortestLengths> {
    const lengths = new ShortestLengths(nfa, stacks, usable);
    const incoming = incomingEdges(nfa, lengths.nextUsable);
    const { tables } = lengths;
    for (let depth = 0; depth <= stacks.maxDepth; depth++) {
      yield;
      const table = yield* lengths.computeTable(incoming, tables.at(-1));
      if (tables.at(-1)?.every((length, state) => length === table[state]) === true) break;
      tables.push(table);
      if (!stacks.hasRecursion) break;
    }
    return lengths;
  }

  /**
   * Returns the length from a state to the end of the whole text, given the rules that enclose it.
   */
  of(state: number, stack: number): number {
    return this.table(this.stacks.depth(stack))[state] + this.ofStack(stack);
  }

  /** Returns whether some state has a text here, but none of the usable bytes of other lengths. */
  exceeds(others: ShortestLengths): boolean {
    const { tables } = others;
    return this.tables.some((table, depth) => {
      const other = tables[Math.min(depth, tables.length - 1)];
      return table.some((length, state) => length < Infinity && other[state] === Infinity);
    });
  }

  /**
   * Returns the smallest first byte of the shortest texts from a state to the end of its rule; 256
   * if they begin otherwise.
   */
  firstByte(state: number, stack: number): number {
    const table = this.table(this.stacks.depth(stack));
    let first = 256;
    for (const { range, to } of this.nfa.byteEdges[state]) {
      if (table[to] + 1 !== table[state]) continue;
      const byte = this.nextUsable[range[0]];
      if (byte <= range[1] && byte < first) first = byte;
    }
    return first;
  }

  private table(depth: number): Float64Array {
    return this.tables[Math.min(this.stacks.maxDepth - depth, this.tables.length - 1)];
  }

  private ofStack(stack: number): number {
    const { stackLengths, stacks } = this;
    let length = stackLengths[stack];
    if (length === undefined) {
      const parent = stacks.parent(stack);
      length = this.table(stacks.depth(parent))[stacks.returnState(stack)] + this.ofStack(parent);
      stackLengths[stack] = length;
    }
    return length;
  }

  /**
   * Finds the shortest derivations from the ends of rules backward (Knuth 1977): a state's length
   * is final when it is reached.
   */
  private *computeTable(incoming: IncomingEdges, shallower: Float64Array | undefined): Steps<Float64Array> {
    const { nfa, stacks } = this;
    const lengths = new Float64Array(nfa.stateCount).fill(Infinity);
    const buckets: number[][] = [];
    let visits = 0;
    const push = (state: number, length: number) => {
      if (length < lengths[state] && length <= MAX_LENGTH) {
        lengths[state] = length;
        (buckets[length] ??= []).push(state);
      }
    };
    /** The length of a rule's shortest text, where it is nested in the rule of an edge. */
    const lengthOfRule = (edge: RuleUse): number => {
      const start = nfa.starts[edge.rule];
      if (!stacks.isRecursive(edge.rule, edge.from)) return lengths[start];
      return shallower?.[start] ?? Infinity;
    };
    for (const end of nfa.ends) push(end, 0);
    for (let length = 0; length < buckets.length; length++) {
      const bucket = buckets[length];
      if (bucket === undefined) continue;
      for (const state of bucket) {
        if (lengths[state] !== length) continue;
        if (++visits % STATES_PER_STEP === 0) yield;
        for (const from of incoming.epsilon[state] ?? []) push(from, length);
        for (const from of incoming.bytes[state] ?? []) push(from, length + 1);
        for (const edge of incoming.rulesTo[state] ?? []) push(edge.from, lengthOfRule(edge) + length);
        const rule = nfa.ruleOf[state];
        if (state !== nfa.starts[rule]) continue;
        for (const edge of incoming.rulesOf[rule] ?? []) {
          if (!stacks.isRecursive(rule, edge.from)) push(edge.from, length + lengths[edge.to]);
        }
      }
    }
    return lengths;
  }
}

/** A rule's edge with its source. */
interface RuleUse {
  readonly from: number;
  readonly to: number;
  readonly rule: number;
}

/** Edges by their targets. */
interface IncomingEdges {
  readonly epsilon: (number[] | undefined)[];
  readonly bytes: (number[] | undefined)[];
  readonly rulesTo: (RuleUse[] | undefined)[];
  /** [rules] */
  readonly rulesOf: (RuleUse[] | undefined)[];
}

function incomingEdges({ stateCount, byteEdges, epsilonEdges, ruleEdges }: Nfa, nextUsable: Int16Array): IncomingEdges {
  const result: IncomingEdges = { epsilon: [], bytes: [], rulesTo: [], rulesOf: [] };
  for (let from = 0; from < stateCount; from++) {
    for (const to of epsilonEdges[from]) (result.epsilon[to] ??= []).push(from);
    for (const { range, to } of byteEdges[from]) {
      if (nextUsable[range[0]] <= range[1]) (result.bytes[to] ??= []).push(from);
    }
    for (const { rule, to } of ruleEdges[from]) {
      (result.rulesTo[to] ??= []).push({ from, to, rule });
      (result.rulesOf[rule] ??= []).push({ from, to, rule });
    }
  }
  return result;
}

/** Returns for each byte the smallest usable one that is not less; 256 if there is none. */
function nextUsableBytes(usable: UsableBytes): Int16Array {
  const next = new Int16Array(257).fill(256);
  for (let byte = 255; byte >= 0; byte--) next[byte] = usable[byte] === 1 ? byte : next[byte + 1];
  return next;
}
