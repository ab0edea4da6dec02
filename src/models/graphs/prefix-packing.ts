import type { DecoderConfig } from "../../engine/nn/index.js";
import { tokensThatFit } from "../weights/micro-batch-memory.js";
import { sharedPrefixLength } from "./sequence-batch.js";
import {
  compareTokens,
  estimateCost,
  estimatePaddingCost,
  layOutSequences,
  packedSize,
  sequenceKeys,
  type PrefixLayout,
  type TokenSequence,
} from "./prefix-layout.js";

/** Items, such as turns or examples, that go through the model in one forward and backward pass. */
export interface MicroBatch extends PrefixLayout {
  /** Indices of the items; `positions` has the positions of their sequences, in this order. */
  readonly indices: readonly number[];
}

export interface PackingOptions {
  /**
   * Memory of a micro-batch, in tokens of short rows. An item that needs more shares its
   * micro-batch only with those it contains.
   */
  readonly microBatchTokens: number;
  readonly config: Pick<DecoderConfig, "hiddenSize" | "heads">;
  /** Whether tokens that sequences begin with are computed once; default true. */
  readonly sharePrefixes?: boolean;
}

/** Fixed cost of a forward and backward pass, in tokens. */
const MICRO_BATCH_COST = 256;
/**
 * Cuts of each kind (at the largest differences in length, evenly spaced) that are tried to split a
 * micro-batch.
 */
const MAX_CUTS = 4;

/**
 * Packs items, each of one sequence or of several that begin alike, into micro-batches in which
 * shared prefixes are computed once. Attention pads rows to the longest in the micro-batch: where
 * that costs more than further micro-batches, items are ordered by length and micro-batches are
 * split.
 */
export function packSharedPrefixes(
  items: readonly (readonly TokenSequence[])[],
  options: PackingOptions,
): readonly MicroBatch[] {
  if (options.sharePrefixes === false) return packDistinct(items, options);
  const copies = new Map<string, number[]>();
  const sequenceKey = sequenceKeys();
  /** Keys of items; turns in the same state may be one object. */
  const itemKeys = new Map<readonly TokenSequence[], string>();
  items.forEach((sequences, i) => {
    const key = itemKeys.get(sequences) ?? sequences.map(sequenceKey).join(";");
    itemKeys.set(sequences, key);
    const indices = copies.get(key);
    if (indices === undefined) copies.set(key, [i]);
    else indices.push(i);
  });
  if (copies.size === items.length) return packDistinct(items, options);
  // Equal items, such as turns in the same state, are laid out once and share their rows.
  const groups = [...copies.values()];
  const distinct = groups.map(([i]) => items[i]);
  return packDistinct(distinct, options).map(({ indices, positions, ...layout }) => {
    let start = 0;
    const repeated = indices.map((i) => {
      const own = positions.slice(start, (start += distinct[i].length));
      return groups[i].map(() => own);
    });
    return { ...layout, indices: indices.flatMap((i) => groups[i]), positions: repeated.flat(2) };
  });
}

function packDistinct(items: readonly (readonly TokenSequence[])[], options: PackingOptions): readonly MicroBatch[] {
  const { hiddenSize } = options.config;
  const order = items.map((_, i) => i).sort((a, b) => compareTokens(items[a][0], items[b][0]));
  const microBatches = packInOrder(items, order, options);
  const padding = microBatches.reduce((sum, { groups }) => sum + estimatePaddingCost(groups, hiddenSize), 0);
  if (padding <= MICRO_BATCH_COST) return microBatches;
  const byLength = packInOrder(items, orderByLength(items, order, options), options);
  const [first, second] = [microBatches, byLength].map((candidate) =>
    candidate.flatMap((microBatch) => splitPadded(items, microBatch, options)),
  );
  return totalCost(second, hiddenSize) < totalCost(first, hiddenSize) ? second : first;
}

/**
 * Packs items in an order; each micro-batch takes as many as fit, or as need no more memory
 * together than the largest of them alone, such as the turns of a long conversation.
 */
function packInOrder(
  items: readonly (readonly TokenSequence[])[],
  order: readonly number[],
  options: PackingOptions,
): MicroBatch[] {
  const { config, microBatchTokens } = options;
  const memory = ({ groups }: MicroBatch) => tokensThatFit(packedSize(groups), config);
  const ownMemory = items.map((_, i) => memory(packItems(items, [i], options)));
  const pack = (start: number, count: number) => packItems(items, order.slice(start, start + count), options);
  const fits = (microBatch: MicroBatch) =>
    memory(microBatch) <= Math.max(microBatchTokens, ...microBatch.indices.map((i) => ownMemory[i]));
  const microBatches: MicroBatch[] = [];
  for (let start = 0; start < order.length; start += microBatches.at(-1)!.indices.length) {
    const count = order.length - start;
    let microBatch = pack(start, 1);
    // The largest number of items that fits is in [low, high). Micro-batches are of similar size,
    // so a first limit close to the last one's bounds the layouts that are discarded.
    let [low, high] = [1, count + 1];
    for (let next = Math.min(count, 2 * (microBatches.at(-1)?.indices.length ?? Infinity)); high - low > 1;) {
      const candidate = pack(start, next);
      if (fits(candidate)) [low, microBatch] = [next, candidate];
      else high = next;
      next = high > count ? Math.min(count, 2 * next) : Math.floor((low + high) / 2);
    }
    microBatches.push(microBatch);
  }
  return microBatches;
}

function packItems(
  items: readonly (readonly TokenSequence[])[],
  indices: readonly number[],
  { config: { hiddenSize }, sharePrefixes }: PackingOptions,
): MicroBatch {
  const sequences = indices.flatMap((i) => items[i]);
  return { indices, ...layOutSequences(sequences, { hiddenSize, sharePrefixes }) };
}

/** Splits a micro-batch as long as the parts cost less than the whole. */
function splitPadded(
  items: readonly (readonly TokenSequence[])[],
  microBatch: MicroBatch,
  options: PackingOptions,
): MicroBatch[] {
  const { hiddenSize } = options.config;
  if (estimatePaddingCost(microBatch.groups, hiddenSize) <= MICRO_BATCH_COST) return [microBatch];
  let best: readonly MicroBatch[] = [microBatch];
  for (const cut of cutsToTry(microBatch.indices.map((i) => maxLength(items[i])))) {
    const parts = [microBatch.indices.slice(0, cut), microBatch.indices.slice(cut)];
    const candidate = parts.map((indices) => packItems(items, indices, options));
    if (totalCost(candidate, hiddenSize) < totalCost(best, hiddenSize)) best = candidate;
  }
  return best.length === 1 ? [microBatch] : best.flatMap((part) => splitPadded(items, part, options));
}

function cutsToTry(lengths: readonly number[]): Set<number> {
  const difference = (cut: number) => Math.abs(lengths[cut] - lengths[cut - 1]);
  const cuts = lengths.slice(1).map((_, i) => i + 1);
  const largest = [...cuts].sort((a, b) => difference(b) - difference(a)).slice(0, MAX_CUTS);
  const step = Math.ceil(lengths.length / (MAX_CUTS + 1));
  return new Set([...largest, ...cuts.filter((cut) => cut % step === 0)]);
}

/**
 * Orders families of items by their number of items, then by length, because attention also pads
 * groups to the largest. A family's items share at least half of their tokens.
 */
function orderByLength(
  items: readonly (readonly TokenSequence[])[],
  order: readonly number[],
  { sharePrefixes = true }: PackingOptions,
): number[] {
  const areRelated = ([a]: readonly TokenSequence[], [b]: readonly TokenSequence[]) =>
    sharePrefixes && 2 * sharedPrefixLength(a, b) >= Math.max(a.length, b.length);
  const families: number[][] = [];
  for (const i of order) {
    const last = families.at(-1);
    if (last !== undefined && areRelated(items[last.at(-1)!], items[i])) last.push(i);
    else families.push([i]);
  }
  const longest = (family: readonly number[]) => Math.max(...family.map((i) => maxLength(items[i])));
  return families.sort((a, b) => a.length - b.length || longest(b) - longest(a)).flat();
}

function maxLength(sequences: readonly TokenSequence[]): number {
  return Math.max(...sequences.map(({ length }) => length));
}

function totalCost(microBatches: readonly MicroBatch[], hiddenSize: number): number {
  return microBatches.reduce((sum, { groups }) => sum + MICRO_BATCH_COST + estimateCost(groups, hiddenSize), 0);
}
