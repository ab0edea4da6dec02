import { invalidArgument } from "../../core/errors.js";
import type { DecoderConfig } from "../../engine/nn/decoder-config.js";
import { getRopeRegime } from "../../engine/nn/rope.js";
import { int32, tensor, type Tensor } from "../../engine/tensor/tensor.js";
import { headIndices, padIndexFeeds, positionFeeds } from "./attention-feeds.js";

/** Sequences with a shared prefix, which is computed once. */
export interface PrefixGroup {
  readonly prefix: readonly number[];
  readonly rows: readonly (readonly number[])[];
}

/** Position of a token; `index` counts from the end of the prefix and is negative within it. */
export interface TokenPosition {
  readonly group: number;
  readonly row: number;
  readonly index: number;
}

/** The final states that a batch selects. */
export interface SelectedStates {
  /** Inputs of a sequence graph with selected states. */
  readonly feeds: Record<string, Tensor>;
  /** For each position, the index of its state in the graph's output. */
  readonly select: readonly number[];
}

export interface PackedBatch {
  /** Inputs of the graphs that sequence-graph.ts builds. */
  readonly feeds: Record<string, Tensor>;
  /** The token before each packed token in its sequence: its index, FIRST_TOKEN or PADDING_TOKEN. */
  readonly predecessors: readonly number[];
  /** Length of each packed token's sequence, which rotary frequencies may depend on. */
  readonly lengths: readonly number[];
  /** Selects the states that predict the tokens at these positions; undefined if one is the first of its sequence. */
  selectPredictingStates(positions: readonly TokenPosition[]): SelectedStates | undefined;
}

/** Predecessor of the first token of a sequence. */
export const FIRST_TOKEN = -1;

/** Predecessor of the dummy token that fills padding slots. */
export const PADDING_TOKEN = -2;

/** Position of padding keys, beyond every real position, so that causal attention masks them. */
export const PADDING_POSITION = 2 ** 30;

/**
 * Packs groups of sequences without padding: the prefix common to all groups, the groups' prefixes and the rows follow
 * one another. Pad indices scatter the head vectors into slots [groups, ..., rows, ..., tokens] for attention.
 */
export function packSequences(
  config: DecoderConfig,
  groups: readonly PrefixGroup[],
  { withPrefix = true }: { withPrefix?: boolean } = {},
): PackedBatch {
  if (!withPrefix && groups.some(({ prefix }) => prefix.length > 0))
    throw invalidArgument("A group has a prefix, but the graph was created with `withPrefix: false`.");
  for (const { prefix, rows } of groups) for (const tokens of [prefix, ...rows]) checkTokens(config, tokens);
  // Rows whose lengths need different rotary frequencies cannot share a prefix.
  const groupsToPack = groups.map((group) => (haveSameFrequencies(config, [group]) ? group : inlinePrefix(group)));
  const sharedLength = haveSameFrequencies(config, groupsToPack) ? commonPrefixLength(groupsToPack) : 0;
  const packed = packTokens(config, groupsToPack, { sharedLength, minLength: withPrefix ? 1 : 0 });
  const indexOffsets = groups.map((group, i) => (groupsToPack[i] === group ? 0 : group.prefix.length));
  const selectPredictingStates = (tokenPositions: readonly TokenPosition[]) =>
    packed.selectPredictingStates(
      tokenPositions.map(({ group, row, index }) => ({ group, row, index: index + indexOffsets[group] })),
    );
  return { ...packed, selectPredictingStates };
}

/** Checks token ids. @throws INVALID_ARGUMENT for a token outside the vocabulary. */
export function checkTokens({ vocabSize }: DecoderConfig, tokens: readonly number[]): void {
  const invalid = tokens.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabSize);
  if (invalid === undefined) return;
  throw invalidArgument(`Tokens must be integers from 0 to ${vocabSize - 1}, got ${invalid}.`);
}

/** Returns the length of the longest common prefix of two sequences. */
export function sharedPrefixLength(a: readonly number[], b: readonly number[]): number {
  const end = Math.min(a.length, b.length);
  let length = 0;
  while (length < end && a[length] === b[length]) length++;
  return length;
}

/** Returns the length of the longest common prefix of the groups' prefixes; 0 for a single group. */
export function commonPrefixLength([first, ...others]: readonly PrefixGroup[]): number {
  if (others.length === 0) return 0;
  return Math.min(...others.map(({ prefix }) => sharedPrefixLength(first.prefix, prefix)));
}

/** Returns whether all rows have the same rotary frequencies, which may depend on their lengths. */
function haveSameFrequencies({ ropes }: DecoderConfig, groups: readonly PrefixGroup[]): boolean {
  const lengths = groups.flatMap(({ prefix, rows }) => rows.map((row) => prefix.length + row.length));
  return getRopeRegime(ropes, Math.min(...lengths)) === getRopeRegime(ropes, Math.max(...lengths));
}

function inlinePrefix({ prefix, rows }: PrefixGroup): PrefixGroup {
  return { prefix: [], rows: rows.map((row) => [...prefix, ...row]) };
}

/** Packs groups whose prefixes share `sharedLength` tokens. That part and the rest have at least `minLength` slots each. */
function packTokens(
  config: DecoderConfig,
  groups: readonly PrefixGroup[],
  { sharedLength, minLength }: { readonly sharedLength: number; readonly minLength: number },
): PackedBatch {
  const sharedSlots = Math.max(minLength, sharedLength);
  const prefixLength = Math.max(minLength, ...groups.map(({ prefix }) => prefix.length - sharedLength));
  const rowCount = Math.max(1, ...groups.map(({ rows }) => rows.length));
  const rowLength = Math.max(1, ...groups.flatMap(({ rows }) => rows.map((row) => row.length)));

  const tokens: number[] = [];
  const positions: number[] = [];
  const lengths: number[] = [];
  const predecessors: number[] = [];
  /** Appends tokens from `position` on after `predecessor`, of a sequence of `length` tokens; returns the index of the first. */
  const appendTokens = (added: readonly number[], position: number, length: number, predecessor: number): number => {
    const start = tokens.length;
    added.forEach((token, i) => {
      predecessors.push(i === 0 ? predecessor : tokens.length - 1);
      tokens.push(token);
      positions.push(position + i);
      lengths.push(length);
    });
    return start;
  };
  const getMaxLength = ({ prefix, rows }: PrefixGroup) => prefix.length + Math.max(0, ...rows.map((row) => row.length));
  const commonLength = Math.max(0, ...groups.map(getMaxLength));
  appendTokens(groups[0]?.prefix.slice(0, sharedLength) ?? [], 0, commonLength, FIRST_TOKEN);
  const lastShared = sharedLength === 0 ? FIRST_TOKEN : sharedLength - 1;
  const starts = groups.map((group) => {
    const { prefix, rows } = group;
    const start = appendTokens(prefix.slice(sharedLength), sharedLength, getMaxLength(group), lastShared);
    const lastOfPrefix = prefix.length > sharedLength ? tokens.length - 1 : lastShared;
    return {
      prefix: start,
      rows: rows.map((row) => appendTokens(row, prefix.length, prefix.length + row.length, lastOfPrefix)),
    };
  });
  const hasNoPadding =
    sharedLength === sharedSlots &&
    groups.every(
      ({ prefix, rows }) =>
        prefix.length === sharedLength + prefixLength &&
        rows.length === rowCount &&
        rows.every((row) => row.length === rowLength),
    );
  // One dummy token fills all padding slots; attention masks it and nothing selects it.
  const paddingIndex = tokens.length;
  if (!hasNoPadding) {
    tokens.push(0);
    positions.push(0);
    lengths.push(1);
    predecessors.push(PADDING_TOKEN);
  }

  const sharedIndexAt = (i: number) => (i < sharedLength ? i : paddingIndex);
  const prefixIndexAt = (group: number, i: number) =>
    sharedLength + i < groups[group].prefix.length ? starts[group].prefix + i : paddingIndex;
  const rowIndexAt = (group: number, row: number, i: number) =>
    i < (groups[group].rows[row]?.length ?? 0) ? starts[group].rows[row] + i : paddingIndex;

  const getHeadIndices = (heads: number) => [
    ...headIndices(config, heads, { groups: 1, rows: 1, tokens: sharedSlots }, (_group, _row, i) => sharedIndexAt(i)),
    ...headIndices(config, heads, { groups: groups.length, rows: 1, tokens: prefixLength }, (group, _, i) =>
      prefixIndexAt(group, i),
    ),
    ...headIndices(config, heads, { groups: groups.length, rows: rowCount, tokens: rowLength }, rowIndexAt),
  ];
  const keyPositions = (count: number, indexAt: (slot: number) => number) =>
    Int32Array.from({ length: count }, (_, slot) =>
      indexAt(slot) === paddingIndex ? PADDING_POSITION : positions[indexAt(slot)],
    );

  const feeds: Record<string, Tensor> = {
    tokens: int32(tokens),
    common_prefix_positions: tensor("int32", [1, 1, sharedSlots], keyPositions(sharedSlots, sharedIndexAt)),
    prefix_positions: tensor(
      "int32",
      [groups.length, 1, prefixLength],
      keyPositions(groups.length * prefixLength, (slot) =>
        prefixIndexAt(Math.floor(slot / prefixLength), slot % prefixLength),
      ),
    ),
    row_positions: tensor(
      "int32",
      [groups.length, rowCount, rowLength],
      keyPositions(groups.length * rowCount * rowLength, (slot) =>
        rowIndexAt(
          Math.floor(slot / (rowCount * rowLength)),
          Math.floor(slot / rowLength) % rowCount,
          slot % rowLength,
        ),
      ),
    ),
    ...padIndexFeeds("query", getHeadIndices(config.heads), tokens.length * config.heads),
    ...padIndexFeeds("key", getHeadIndices(config.keyValueHeads), tokens.length * config.keyValueHeads),
    ...positionFeeds(config, positions, lengths),
  };
  /** Returns the index of the token that predicts a position; -1 for the first of a sequence. */
  const findPredictor = ({ group, row, index }: TokenPosition): number => {
    if (index > 0) return starts[group].rows[row] + index - 1;
    const prefixIndex = groups[group].prefix.length + index - 1;
    if (prefixIndex < 0) return -1;
    return prefixIndex < sharedLength ? prefixIndex : starts[group].prefix + prefixIndex - sharedLength;
  };
  const selectPredictingStates = (tokenPositions: readonly TokenPosition[]): SelectedStates | undefined => {
    const flatIndices = tokenPositions.map(findPredictor);
    if (flatIndices.includes(-1)) return undefined;
    return selectStates(config, { flatIndices, tokenPositions, positions, groups: groups.length, rows: rowCount });
  };
  return { feeds, predecessors, lengths, selectPredictingStates };
}

/**
 * Selects states, each once, as queries of the last layer by rows. A state within a prefix is a query of its row, whose keys are
 * masked since they come later. A dummy state fills padding slots and stands for all tokens that are not selected.
 */
function selectStates(
  config: DecoderConfig,
  {
    flatIndices,
    tokenPositions,
    positions,
    groups,
    rows,
  }: {
    readonly flatIndices: readonly number[];
    readonly tokenPositions: readonly TokenPosition[];
    readonly positions: readonly number[];
    readonly groups: number;
    readonly rows: number;
  },
): SelectedStates {
  const stateIndices = new Map<number, number>();
  const byRow: number[][] = Array.from({ length: groups * rows }, () => []);
  flatIndices.forEach((token, i) => {
    if (stateIndices.has(token)) return;
    byRow[tokenPositions[i].group * rows + tokenPositions[i].row].push(stateIndices.size);
    stateIndices.set(token, stateIndices.size);
  });
  const tokens = [...stateIndices.keys()];
  const paddingIndex = tokens.length;
  const maxPerRow = Math.max(...byRow.map((rowStates) => rowStates.length));
  // The dummy state needs its own slot; otherwise it would share a real state's gradient.
  const length = byRow.every((rowStates) => rowStates.length === maxPerRow) ? maxPerRow + 1 : maxPerRow;
  const stateAt = (group: number, row: number, i: number) => byRow[group * rows + row][i] ?? paddingIndex;
  const indices = headIndices(config, config.heads, { groups, rows, tokens: length }, stateAt);
  const inverse = new Int32Array(positions.length).fill(paddingIndex);
  tokens.forEach((token, stateIndex) => (inverse[token] = stateIndex));
  const positionAt = (slot: number) => {
    const stateIndex = byRow[Math.floor(slot / length)][slot % length];
    return stateIndex === undefined ? PADDING_POSITION : positions[tokens[stateIndex]];
  };
  return {
    feeds: {
      selected_tokens: int32([...tokens, 0]),
      selected_tokens_inverse: tensor("int32", [positions.length], inverse),
      selected_positions: tensor(
        "int32",
        [groups, rows, length],
        Int32Array.from({ length: groups * rows * length }, (_, slot) => positionAt(slot)),
      ),
      ...padIndexFeeds("selected", indices, (paddingIndex + 1) * config.heads),
    },
    select: flatIndices.map((token) => stateIndices.get(token)!),
  };
}
