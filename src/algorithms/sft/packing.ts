import type { SequenceGroup } from "../../models/batch.js";
import { memoryInTokens } from "../../models/pass-memory.js";
import type { SelectedToken } from "../../models/training-graph.js";
import type { DecoderConfig } from "../../nn/config.js";
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
  /** Memory of a pass in tokens; an example that takes more by itself has a pass of its own. */
  readonly maxTokens: number;
  /** What the memory of attention depends on. */
  readonly network: Pick<DecoderConfig, "hiddenSize" | "heads">;
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
  { maxTokens, sharePrefixes, network }: PackingOptions,
): readonly Pass[] {
  const alone = (rows: readonly TokenExample[]) => rows.map((row) => ({ shared: 0, rows: [row] }));
  const clusters = sharePrefixes ? shareBeginnings(examples) : alone(examples);
  // Slots are for the largest group of a pass too, so groups of one size go together.
  const sizes = new Set(clusters.map(({ rows }) => rows.length));
  return [...sizes]
    .sort((a, b) => a - b)
    .flatMap((size) => {
      const alike = clusters.filter(({ rows }) => rows.length === size);
      const fits = (tokens: number, clusters: number, longest: number) =>
        memoryInTokens({ tokens, pairs: clusters * size * longest ** 2 }, network) <= maxTokens;
      return dealOut(alike, fits).map(passOf);
    });
}

/** `fits` tells of so many tokens in so many clusters whether they go into one pass. */
function dealOut(
  clusters: readonly Cluster[],
  fits: (tokens: number, clusters: number, longest: number) => boolean,
): Cluster[][] {
  const passes: Cluster[][] = [];
  let tokens = 0;
  let longest = 0;
  for (const cluster of [...clusters].sort((a, b) => slots(b) - slots(a))) {
    const next = flatTokens(cluster);
    const isShort = slots(cluster) < SHORTEST_SHARE * longest && tokens >= WORTHWHILE_TOKENS;
    if (passes.length === 0 || !fits(tokens + next, passes.at(-1)!.length + 1, longest) || isShort) {
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
