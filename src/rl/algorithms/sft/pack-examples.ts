import type { PrefixGroup } from "../../../models/graphs/sequence-batch.js";
import { tokensThatFit } from "../../../models/weights/micro-batch-memory.js";
import type { SelectedToken } from "../../../models/graphs/training-graph.js";
import type { DecoderConfig } from "../../../engine/nn/decoder-config.js";
import { clusterBySharedPrefix, type PrefixCluster } from "./shared-prefixes.js";
import type { TokenExample } from "../../data/sft-example.js";

/** Examples that go through the model together, and which of their tokens are learnt. */
export interface MicroBatch {
  readonly groups: readonly PrefixGroup[];
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
const MIN_LENGTH_FRACTION = 0.7;
/** unless the pass would be so small that its start costs more than the empty slots. */
const MIN_SPLIT_TOKENS = 1024;

/** Deals examples out to passes of rows of like length. Every example is in one pass; their order is lost. */
export function packExamples(
  examples: readonly TokenExample[],
  { maxTokens, sharePrefixes, network }: PackingOptions,
): readonly MicroBatch[] {
  const withoutSharing = (rows: readonly TokenExample[]) => rows.map((row) => ({ shared: 0, rows: [row] }));
  const clusters = sharePrefixes ? clusterBySharedPrefix(examples) : withoutSharing(examples);
  // Slots are for the largest group of a pass too, so groups of one size go together.
  const sizes = new Set(clusters.map(({ rows }) => rows.length));
  return [...sizes]
    .sort((a, b) => a - b)
    .flatMap((size) => {
      const sameSize = clusters.filter(({ rows }) => rows.length === size);
      const fits = (tokens: number, clusters: number, maxLength: number) =>
        tokensThatFit({ tokens, pairs: clusters * size * maxLength ** 2 }, network) <= maxTokens;
      return splitIntoMicroBatches(sameSize, fits).map(toMicroBatch);
    });
}

/** `fits` tells of so many tokens in so many clusters whether they go into one pass. */
function splitIntoMicroBatches(
  clusters: readonly PrefixCluster[],
  fits: (tokens: number, clusters: number, maxLength: number) => boolean,
): PrefixCluster[][] {
  const microBatches: PrefixCluster[][] = [];
  let tokens = 0;
  let maxLength = 0;
  for (const cluster of [...clusters].sort((a, b) => maxRowLength(b) - maxRowLength(a))) {
    const next = countTokens(cluster);
    const isShort = maxRowLength(cluster) < MIN_LENGTH_FRACTION * maxLength && tokens >= MIN_SPLIT_TOKENS;
    if (microBatches.length === 0 || !fits(tokens + next, microBatches.at(-1)!.length + 1, maxLength) || isShort) {
      microBatches.push([]);
      tokens = 0;
      maxLength = maxRowLength(cluster);
    }
    microBatches.at(-1)!.push(cluster);
    tokens += next;
  }
  return microBatches;
}

const maxRowLength = ({ rows }: PrefixCluster) => Math.max(...rows.map(({ tokens }) => tokens.length));

function countTokens({ shared, rows }: PrefixCluster): number {
  return rows.reduce((sum, { tokens }) => sum + tokens.length - shared, shared);
}

function toMicroBatch(clusters: readonly PrefixCluster[]): MicroBatch {
  const selected: SelectedToken[] = [];
  const groups = clusters.map(({ shared, rows }, group) => {
    rows.forEach(({ tokens, lossMask }, row) => {
      // Nothing comes before a sequence's first token, so nothing predicts it.
      for (let i = Math.max(1, shared); i < tokens.length; i++) {
        if (lossMask[i] !== 0) selected.push({ group, row, index: i - shared });
      }
    });
    return { prefix: rows[0].tokens.slice(0, shared), rows: rows.map(({ tokens }) => tokens.slice(shared)) };
  });
  return { groups, selected, withPrefix: clusters.some(({ shared }) => shared > 0) };
}
