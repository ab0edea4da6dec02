import type { SequenceGroup } from "../../models/batch.js";
import type { SelectedToken } from "../../models/training-graph.js";
import { shareBeginnings, type Cluster } from "./beginnings.js";
import type { TokenExample } from "./example.js";

/** Examples that go through the model together, and which of their tokens are learnt. */
export interface Pass {
  readonly groups: readonly SequenceGroup[];
  readonly selected: readonly SelectedToken[];
  /** Whether the groups have prefixes; all or none of a pass have. */
  readonly withPrefix: boolean;
}

export interface PackingOptions {
  /** Of a pass; an example that is longer by itself has a pass of its own. */
  readonly maxTokens: number;
  /** Computes beginnings that examples share once. */
  readonly sharePrefixes: boolean;
}

/**
 * Tokens lie flat, but attention has slots for the longest row of a pass: a row that is this much shorter than the longest
 * starts another pass,
 */
const SHORTEST_SHARE = 0.7;
/** unless the pass would be so small that its start costs more than the empty slots. */
const WORTHWHILE_TOKENS = 1024;

/** Deals examples out to passes of rows of like length. Every example is in one pass; their order is lost. */
export function packExamples(
  examples: readonly TokenExample[],
  { maxTokens, sharePrefixes }: PackingOptions,
): readonly Pass[] {
  const alone = (rows: readonly TokenExample[]) => rows.map((row) => ({ shared: 0, rows: [row] }));
  const clusters = sharePrefixes ? shareBeginnings(examples) : alone(examples);
  // Slots are for the largest group of a pass too, so groups of one size go together.
  const sizes = new Set(clusters.map(({ rows }) => rows.length));
  return [...sizes]
    .sort((a, b) => a - b)
    .flatMap((size) => {
      const alike = clusters.filter(({ rows }) => rows.length === size);
      return dealOut(alike, maxTokens).map(passOf);
    });
}

function dealOut(clusters: readonly Cluster[], maxTokens: number): Cluster[][] {
  const passes: Cluster[][] = [];
  let tokens = 0;
  let longest = 0;
  for (const cluster of [...clusters].sort((a, b) => slots(b) - slots(a))) {
    const next = flatTokens(cluster);
    const isShort = slots(cluster) < SHORTEST_SHARE * longest && tokens >= WORTHWHILE_TOKENS;
    if (passes.length === 0 || tokens + next > maxTokens || isShort) {
      passes.push([]);
      tokens = 0;
      longest = slots(cluster);
    }
    passes.at(-1)!.push(cluster);
    tokens += next;
  }
  return passes;
}

const slots = ({ rows }: Cluster) => Math.max(...rows.map(({ tokens }) => tokens.length));

function flatTokens({ shared, rows }: Cluster): number {
  return rows.reduce((sum, { tokens }) => sum + tokens.length - shared, shared);
}

function passOf(clusters: readonly Cluster[]): Pass {
  const selected: SelectedToken[] = [];
  const groups = clusters.map(({ shared, rows }, group) => {
    rows.forEach(({ tokens, mask }, row) => {
      // Nothing comes before a sequence's first token, so nothing predicts it.
      for (let i = Math.max(1, shared); i < tokens.length; i++) {
        if (mask[i] !== 0) selected.push({ group, row, index: i - shared });
      }
    });
    return { prefix: rows[0].tokens.slice(0, shared), rows: rows.map(({ tokens }) => tokens.slice(shared)) };
  });
  return { groups, selected, withPrefix: clusters.some(({ shared }) => shared > 0) };
}
