import { invalidArgument } from "../../core/errors.js";
import { type DecoderConfig, getRopeRegime } from "../../engine/nn/index.js";
import { int32, tensor, type Tensor } from "../../engine/tensor/index.js";
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
  /**
   * The token before each packed token in its sequence: its index, FIRST_TOKEN or PADDING_TOKEN.
   */
  readonly predecessors: readonly number[];
  /** Length of each packed token's sequence, which rotary frequencies may depend on. */
  readonly lengths: readonly number[];
  /**
   * Selects the states that predict the tokens at these positions; undefined if one is the first of
   * its sequence.
   */
  selectPredictingStates(positions: readonly TokenPosition[]): SelectedStates | undefined;
}

/** Returns the index of the token in a slot of attention. */
type IndexAt = (group: number, row: number, slot: number) => number;

/** Predecessor of the first token of a sequence. */
export const FIRST_TOKEN = -1;

/** Predecessor of the dummy token that fills padding slots. */
export const PADDING_TOKEN = -2;

/** Position of padding keys, beyond every real position, so that causal attention masks them. */
export const PADDING_POSITION = 2 ** 30;

/**
 * Packs groups of sequences without padding: the prefix common to all groups, the groups' prefixes
 * and the rows follow one another. Pad indices scatter the head vectors into slots [groups, ...,
 * rows, ..., tokens] for attention.
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
  const packed = new TokenPacker(config, groupsToPack, sharedLength, withPrefix ? 1 : 0).pack();
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

/**
 * Returns the length of the longest common prefix of the groups' prefixes; 0 for a single group.
 */
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

/**
 * Lays out the tokens of groups whose prefixes share `sharedLength` tokens, and the slots of
 * attention. The shared part and the rest of the prefixes have at least `minLength` slots each.
 */
class TokenPacker {
  private readonly tokens: number[] = [];
  private readonly positions: number[] = [];
  private readonly lengths: number[] = [];
  private readonly predecessors: number[] = [];
  /**
   * Index of each group's first token after the shared ones, and of the first token of each of its
   * rows.
   */
  private readonly starts: readonly { readonly prefix: number; readonly rows: readonly number[] }[];
  /**
   * Index of the dummy token that fills all padding slots; attention masks it and nothing selects
   * it.
   */
  private readonly paddingIndex: number;
  /**
   * Numbers of slots: of the shared tokens, of a prefix after them, and of a row; and of rows in a
   * group.
   */
  private readonly slots: { readonly shared: number; readonly prefix: number; readonly row: number };
  private readonly rowCount: number;

  constructor(
    private readonly config: DecoderConfig,
    private readonly groups: readonly PrefixGroup[],
    private readonly sharedLength: number,
    minLength: number,
  ) {
    this.slots = {
      shared: Math.max(minLength, sharedLength),
      prefix: Math.max(minLength, ...groups.map(({ prefix }) => prefix.length - sharedLength)),
      row: Math.max(1, ...groups.flatMap(({ rows }) => rows.map((row) => row.length))),
    };
    this.rowCount = Math.max(1, ...groups.map(({ rows }) => rows.length));
    this.starts = this.appendGroups();
    this.paddingIndex = this.tokens.length;
    if (this.hasPadding()) this.append([0], { position: 0, length: 1, predecessor: PADDING_TOKEN });
  }

  pack(): PackedBatch {
    const { predecessors, lengths } = this;
    return { feeds: this.feeds(), predecessors, lengths, selectPredictingStates: (all) => this.select(all) };
  }

  /** Appends the shared tokens, then each group's prefix and rows; returns where they begin. */
  private appendGroups(): { prefix: number; rows: number[] }[] {
    const { groups, sharedLength, tokens } = this;
    const getMaxLength = ({ prefix, rows }: PrefixGroup) =>
      prefix.length + Math.max(0, ...rows.map((row) => row.length));
    const length = Math.max(0, ...groups.map(getMaxLength));
    const shared = groups[0]?.prefix.slice(0, sharedLength) ?? [];
    this.append(shared, { position: 0, length, predecessor: FIRST_TOKEN });
    const lastShared = sharedLength === 0 ? FIRST_TOKEN : sharedLength - 1;
    return groups.map((group) => {
      const { prefix, rows } = group;
      const afterShared = { position: sharedLength, length: getMaxLength(group), predecessor: lastShared };
      const start = this.append(prefix.slice(sharedLength), afterShared);
      const predecessor = prefix.length > sharedLength ? tokens.length - 1 : lastShared;
      const { length: position } = prefix;
      const rowStarts = rows.map((row) => this.append(row, { position, length: position + row.length, predecessor }));
      return { prefix: start, rows: rowStarts };
    });
  }

  /**
   * Appends tokens from `position` on of a sequence of `length` tokens; returns the index of the
   * first.
   */
  private append(
    added: readonly number[],
    {
      position,
      length,
      predecessor,
    }: { readonly position: number; readonly length: number; readonly predecessor: number },
  ): number {
    const start = this.tokens.length;
    added.forEach((token, i) => {
      this.predecessors.push(i === 0 ? predecessor : this.tokens.length - 1);
      this.tokens.push(token);
      this.positions.push(position + i);
      this.lengths.push(length);
    });
    return start;
  }

  private hasPadding(): boolean {
    const { groups, sharedLength, slots, rowCount } = this;
    const isFull = ({ prefix, rows }: PrefixGroup) =>
      prefix.length === sharedLength + slots.prefix &&
      rows.length === rowCount &&
      rows.every((row) => row.length === slots.row);
    return sharedLength !== slots.shared || !groups.every(isFull);
  }

  private feeds(): Record<string, Tensor> {
    const { config, groups, tokens, positions, lengths, slots, rowCount } = this;
    const keyPositions = (
      name: string,
      shape: readonly [groups: number, rows: number, slots: number],
      indexAt: IndexAt,
    ) => {
      const [, rows, length] = shape;
      const data = Int32Array.from({ length: shape[0] * rows * length }, (_, slot) => {
        const index = indexAt(Math.floor(slot / (rows * length)), Math.floor(slot / length) % rows, slot % length);
        return index === this.paddingIndex ? PADDING_POSITION : positions[index];
      });
      return { [`${name}_positions`]: tensor("int32", shape, data) };
    };
    return {
      tokens: int32(tokens),
      ...keyPositions("common_prefix", [1, 1, slots.shared], this.sharedIndexAt),
      ...keyPositions("prefix", [groups.length, 1, slots.prefix], this.prefixIndexAt),
      ...keyPositions("row", [groups.length, rowCount, slots.row], this.rowIndexAt),
      ...padIndexFeeds("query", this.headIndices(config.heads), tokens.length * config.heads),
      ...padIndexFeeds("key", this.headIndices(config.keyValueHeads), tokens.length * config.keyValueHeads),
      ...positionFeeds(config, positions, lengths),
    };
  }

  private headIndices(heads: number): number[] {
    const { config, groups, slots, rowCount } = this;
    const count = groups.length;
    return [
      ...headIndices(config, heads, { groups: 1, rows: 1, tokens: slots.shared }, this.sharedIndexAt),
      ...headIndices(config, heads, { groups: count, rows: 1, tokens: slots.prefix }, this.prefixIndexAt),
      ...headIndices(config, heads, { groups: count, rows: rowCount, tokens: slots.row }, this.rowIndexAt),
    ];
  }

  private readonly sharedIndexAt: IndexAt = (_group, _row, i) => (i < this.sharedLength ? i : this.paddingIndex);

  private readonly prefixIndexAt: IndexAt = (group, _row, i) =>
    this.sharedLength + i < this.groups[group].prefix.length ? this.starts[group].prefix + i : this.paddingIndex;

  private readonly rowIndexAt: IndexAt = (group, row, i) =>
    i < (this.groups[group].rows[row]?.length ?? 0) ? this.starts[group].rows[row] + i : this.paddingIndex;

  private select(tokenPositions: readonly TokenPosition[]): SelectedStates | undefined {
    const { config, positions, groups, rowCount: rows } = this;
    const flatIndices = tokenPositions.map((position) => this.findPredictor(position));
    if (flatIndices.includes(-1)) return undefined;
    return selectStates(config, { flatIndices, tokenPositions, positions, groups: groups.length, rows });
  }

  /** Returns the index of the token that predicts a position; -1 for the first of a sequence. */
  private findPredictor({ group, row, index }: TokenPosition): number {
    const { groups, starts, sharedLength } = this;
    if (index > 0) return starts[group].rows[row] + index - 1;
    const prefixIndex = groups[group].prefix.length + index - 1;
    if (prefixIndex < 0) return -1;
    return prefixIndex < sharedLength ? prefixIndex : starts[group].prefix + prefixIndex - sharedLength;
  }
}

/**
 * Selects states, each once, as queries of the last layer by rows. A state within a prefix is a
 * query of its row, whose keys are masked since they come later. A dummy state fills padding slots
 * and stands for all tokens that are not selected.
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
