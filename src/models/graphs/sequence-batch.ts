import { LlamaGymError } from "../../core/errors.js";
import type { DecoderConfig } from "../../engine/nn/decoder-config.js";
import { getRopeRegime, computeRopeTables } from "../../engine/nn/rope.js";
import { int32, tensor, type Tensor } from "../../engine/tensor/tensor.js";

/** Sequences that begin with the same tokens; the prefix is computed once for all of them. */
export interface PrefixGroup {
  readonly prefix: readonly number[];
  readonly rows: readonly (readonly number[])[];
}

/** A token of a row; `index` counts from the prefix's end and is below 0 within the prefix. */
export interface TokenPosition {
  readonly group: number;
  readonly row: number;
  readonly index: number;
}

/** Which final states a batch wants. */
export interface SelectedStates {
  /** Inputs of a sequence graph with states "read". */
  readonly feeds: Record<string, Tensor>;
  /** For each place, the number of its state among those that the graph gives. */
  readonly select: readonly number[];
}

export interface PackedBatch {
  /** Inputs of the graphs that sequence-graph.ts builds. */
  readonly feeds: Record<string, Tensor>;
  /** Reads the states that predict the tokens at these places; undefined when one is the first of its sequence. */
  selectPredictingStates(positions: readonly TokenPosition[]): SelectedStates | undefined;
}

/** Beyond every real position: keys there are seen by nobody. */
export const PADDING_POSITION = 2 ** 30;

/**
 * Lays groups of sequences flat, each token once, also those that all prefixes begin with (the root): root, prefixes and rows
 * follow one another without padding, and routes say where each head vector goes for attention, in slots
 * [groups, ..., rows, ..., tokens].
 */
export function packSequences(
  config: DecoderConfig,
  groups: readonly PrefixGroup[],
  { withPrefix = true }: { withPrefix?: boolean } = {},
): PackedBatch {
  if (!withPrefix && groups.some(({ prefix }) => prefix.length > 0)) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      "A group has a prefix, but the graph was made without (withPrefix: false).",
    );
  }
  for (const { prefix, rows } of groups) for (const tokens of [prefix, ...rows]) checkTokens(config, tokens);
  // Rows whose rotary frequencies differ by their lengths cannot read the same prefix: each gets its own.
  const groupsToPack = groups.map((group) => (checkSameFrequencies(config, [group]) ? group : inlinePrefix(group)));
  const sharedLength = checkSameFrequencies(config, groupsToPack) ? commonPrefixLength(groupsToPack) : 0;
  const packed = packTokens(config, groupsToPack, { sharedLength, minLength: withPrefix ? 1 : 0 });
  const indexOffsets = groups.map((group, i) => (groupsToPack[i] === group ? 0 : group.prefix.length));
  const selectPredictingStates = (tokenPositions: readonly TokenPosition[]) =>
    packed.selectPredictingStates(
      tokenPositions.map(({ group, row, index }) => ({ group, row, index: index + indexOffsets[group] })),
    );
  return { ...packed, selectPredictingStates };
}

/** Throws INVALID_ARGUMENT for a token that the model does not have. */
export function checkTokens({ vocabSize }: DecoderConfig, tokens: readonly number[]): void {
  const invalid = tokens.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabSize);
  if (invalid === undefined) return;
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `Token ${invalid} is not one of the model's ${vocabSize} (0 to ${vocabSize - 1}).`,
  );
}

/** How many first tokens two sequences share. */
export function sharedPrefixLength(a: readonly number[], b: readonly number[]): number {
  const end = Math.min(a.length, b.length);
  let length = 0;
  while (length < end && a[length] === b[length]) length++;
  return length;
}

/** How many first tokens the prefixes of several groups share. */
export function commonPrefixLength([first, ...others]: readonly PrefixGroup[]): number {
  if (others.length === 0) return 0;
  return Math.min(...others.map(({ prefix }) => sharedPrefixLength(first.prefix, prefix)));
}

/** Whether the rows' rotary frequencies, which may depend on their lengths, are the same. */
function checkSameFrequencies({ ropes }: DecoderConfig, groups: readonly PrefixGroup[]): boolean {
  const lengths = groups.flatMap(({ prefix, rows }) => rows.map((row) => prefix.length + row.length));
  return getRopeRegime(ropes, Math.min(...lengths)) === getRopeRegime(ropes, Math.max(...lengths));
}

function inlinePrefix({ prefix, rows }: PrefixGroup): PrefixGroup {
  return { prefix: [], rows: rows.map((row) => [...prefix, ...row]) };
}

/**
 * `root` tokens are common to all prefixes. It and the rest of the prefixes have slots for at least `shortest` tokens, empty ones
 * if need be.
 */
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
  /** Puts tokens down from a position on, those of sequences of at most so many tokens; gives the number of the first. */
  const appendTokens = (added: readonly number[], position: number, length: number): number => {
    const start = tokens.length;
    added.forEach((token, i) => {
      tokens.push(token);
      positions.push(position + i);
      lengths.push(length);
    });
    return start;
  };
  const getMaxLength = ({ prefix, rows }: PrefixGroup) => prefix.length + Math.max(0, ...rows.map((row) => row.length));
  appendTokens(groups[0]?.prefix.slice(0, sharedLength) ?? [], 0, Math.max(0, ...groups.map(getMaxLength)));
  const starts = groups.map((group) => {
    const { prefix, rows } = group;
    return {
      prefix: appendTokens(prefix.slice(sharedLength), sharedLength, getMaxLength(group)),
      rows: rows.map((row) => appendTokens(row, prefix.length, prefix.length + row.length)),
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
  // One dummy token stands in every empty slot: nobody sees it and nothing is read from it.
  const paddingIndex = tokens.length;
  if (!hasNoPadding) {
    tokens.push(0);
    positions.push(0);
    lengths.push(1);
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
    root_positions: tensor("int32", [1, 1, sharedSlots], keyPositions(sharedSlots, sharedIndexAt)),
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
  /** The flat token that predicts a place; -1 for the first token of a sequence. */
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
  return { feeds, selectPredictingStates };
}

/**
 * The states to be read, each once, and their places among the queries of the last layer, by rows: one that stands in a prefix
 * asks as part of a row, whose own keys it does not see since they come later. A last state that nobody reads stands in empty
 * slots and for all tokens that are not read.
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
  // The state of nobody needs an empty slot: it would get the gradient of whatever else stood in its place.
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
      read_tokens: int32([...tokens, 0]),
      read_tokens_inverse: tensor("int32", [positions.length], inverse),
      read_positions: tensor(
        "int32",
        [groups, rows, length],
        Int32Array.from({ length: groups * rows * length }, (_, slot) => positionAt(slot)),
      ),
      ...padIndexFeeds("read", indices, (paddingIndex + 1) * config.heads),
    },
    select: flatIndices.map((token) => stateIndices.get(token)!),
  };
}

/**
 * Which head vector stands in each slot [groups, keyValueHeads, rows, heads per key head, tokens]; `flatToken` gives the flat
 * token of a place.
 */
export function headIndices(
  { keyValueHeads }: Pick<DecoderConfig, "keyValueHeads">,
  heads: number,
  { groups, rows, tokens }: { readonly groups: number; readonly rows: number; readonly tokens: number },
  tokenAt: (group: number, row: number, token: number) => number,
): number[] {
  const headsPerKeyValueHead = heads / keyValueHeads;
  const indices: number[] = [];
  for (let group = 0; group < groups; group++) {
    for (let keyValueHead = 0; keyValueHead < keyValueHeads; keyValueHead++) {
      for (let row = 0; row < rows; row++) {
        for (let headOffset = 0; headOffset < headsPerKeyValueHead; headOffset++) {
          const head = keyValueHead * headsPerKeyValueHead + headOffset;
          for (let i = 0; i < tokens; i++) indices.push(tokenAt(group, row, i) * heads + head);
        }
      }
    }
  }
  return indices;
}

/** A route into slots and back, as inputs of the graph; a row given twice goes back from its first slot. */
export function padIndexFeeds(name: string, indices: readonly number[], rowCount: number): Record<string, Tensor> {
  const inverse = new Int32Array(rowCount);
  for (let position = indices.length - 1; position >= 0; position--) inverse[indices[position]] = position;
  return { [`${name}_slots`]: int32(indices), [`${name}_inverse`]: tensor("int32", [rowCount], inverse) };
}

/** Rotary tables of each token, and its position for models that learned an embedding for each. */
export function positionFeeds(
  config: DecoderConfig,
  positions: readonly number[],
  lengths: readonly number[],
): Record<string, Tensor> {
  const feeds: Record<string, Tensor> = {};
  config.ropes.forEach((rope, i) => {
    const half = rope.rotaryDim / 2;
    const { cos, sin } = computeRopeTables(rope, positions, lengths);
    feeds[`cos_${i}`] = tensor("float32", [positions.length, half], cos);
    feeds[`sin_${i}`] = tensor("float32", [positions.length, half], sin);
  });
  if (config.names.positions !== undefined) feeds.positions = int32(positions);
  return feeds;
}
