import {
  addDims,
  concat,
  expand,
  gatherRows,
  input,
  mulDims,
  reshape,
  gatherRowsWithInverse,
  positiveDim,
  split,
  type Dim,
  type Node,
} from "../../engine/graph/index.js";
import {
  attend,
  attentionBias,
  getAttentionShape,
  padHeads,
  unpadHeads,
  type PadIndex,
  type KeyValueBlock,
  type PaddedShape,
  type DecoderConfig,
  decoder,
  type AttentionFunction,
  type PositionInputs,
  type TokenSelection,
  type ParameterScope,
} from "../../engine/nn/index.js";

/** Returns the position inputs, which are the same for all graphs of a model. */
export function positionInputs(config: DecoderConfig, tokens: Dim): PositionInputs {
  return {
    ropes: config.ropes.map(({ rotaryDim }, i) => ({
      cos: input(`cos_${i}`, "float32", [tokens, rotaryDim / 2]),
      sin: input(`sin_${i}`, "float32", [tokens, rotaryDim / 2]),
    })),
    ids: config.names.positions === undefined ? undefined : input("positions", "int32", [tokens]),
  };
}

/** Graph input: the hidden states of all tokens before the first layer that is computed. */
export const FROZEN_STATES = "frozen_states";

interface SequenceGraphOptions {
  /** Whether batches have prefixes; without, the graph is shorter. */
  readonly withPrefix: boolean;
  /**
   * The final states to return: all [tokens, width], or those selected by the batch [selected,
   * width].
   */
  readonly states: "all" | "selected";
  /** First layer to compute; above 0, the states before it are the input "frozen_states". */
  readonly first?: number;
  /** Layer before which to stop. */
  readonly end?: number;
  /** Receives the hidden states before each computed layer. */
  readonly onLayerInput?: (hidden: Node) => void;
}

/** Query tokens and their positions [groups, rows, tokens]. */
interface QueryBlock {
  readonly shape: PaddedShape;
  readonly positions: Node;
}

/** Keys and values with their positions [groups, rows or 1, keys]. */
interface KeyBlock extends KeyValueBlock {
  readonly positions: Node;
}

/**
 * Returns the final hidden states of sequences packed by `packSequences`: groups of rows behind a
 * prefix that is computed once, and the prefix common to all groups, which is computed once for
 * all.
 */
export function sequenceGraph(
  config: DecoderConfig,
  scope: ParameterScope,
  { withPrefix, states, first = 0, end, onLayerInput }: SequenceGraphOptions,
): Node {
  const tokens = positiveDim("tokens");
  const positions = positionInputs(config, tokens);
  const selection = states === "selected" ? selectTokens(positions, tokens) : undefined;
  const start =
    first === 0 ? input("tokens", "int32", [tokens]) : input(FROZEN_STATES, "float32", [tokens, config.hiddenSize]);
  const attention = packedAttention(config, tokens, withPrefix, selection !== undefined);
  return decoder(config, scope, start, positions, attention, { selection, first, end, onLayerInput });
}

/**
 * The blocks of packed sequences; `selected` has the queries of the last layer, if only selected
 * states are returned.
 */
interface PackedBlocks {
  readonly commonPrefix: QueryBlock;
  readonly prefixes: QueryBlock;
  readonly rows: QueryBlock;
  readonly selected: QueryBlock;
}

function createBlocks(): PackedBlocks {
  const [groups, rows] = ["groups", "rows"].map(positiveDim);
  const createBlock = (name: string, shape: PaddedShape): QueryBlock => ({
    shape,
    positions: input(`${name}_positions`, "int32", [shape.groups, shape.rows, shape.tokens]),
  });
  return {
    commonPrefix: createBlock("common_prefix", { groups: 1, rows: 1, tokens: positiveDim("common_prefix_tokens") }),
    prefixes: createBlock("prefix", { groups, rows: 1, tokens: positiveDim("prefix_tokens") }),
    rows: createBlock("row", { groups, rows, tokens: positiveDim("row_tokens") }),
    selected: createBlock("selected", { groups, rows, tokens: positiveDim("row_selected") }),
  };
}

/**
 * Returns the attention of packed sequences; with `selectsStates`, the last layer has queries for
 * selected states alone.
 */
function packedAttention(
  config: DecoderConfig,
  tokens: Dim,
  withPrefix: boolean,
  selectsStates: boolean,
): AttentionFunction {
  const { heads, keyValueHeads, headDim } = config;
  const packed = createBlocks();
  const blocks = withPrefix ? [packed.commonPrefix, packed.prefixes, packed.rows] : [packed.rows];
  const paddedCount = ({ shape }: QueryBlock, headCount: number) =>
    mulDims(shape.groups, shape.rows, headCount, shape.tokens);
  const paddedCounts = (headCount: number) => blocks.map((block) => paddedCount(block, headCount));
  const padIndexInputs = (name: string, headCount: number): PadIndex => ({
    indices: input(`${name}_slots`, "int32", [addDims(...paddedCounts(headCount))]),
    inverse: input(`${name}_inverse`, "int32", [mulDims(tokens, headCount)]),
  });
  const queryPadIndex = padIndexInputs("query", heads);
  const keyPadIndex = padIndexInputs("key", keyValueHeads);
  const padIntoBlocks = (x: Node, headCount: number, padIndex: PadIndex): Node[] =>
    split(padHeads(x, headCount, headDim, padIndex), 0, paddedCounts(headCount));
  const selectedCount = positiveDim("states");
  const selectedPadIndex: PadIndex = {
    indices: input("selected_slots", "int32", [paddedCount(packed.selected, heads)]),
    inverse: input("selected_inverse", "int32", [mulDims(selectedCount, heads)]),
  };
  return (q, k, v, layer, index) => {
    const attendBlock = (queries: Node, queryBlock: QueryBlock, keyBlocks: readonly KeyBlock[]): Node => {
      const biases = keyBlocks.map((each) => attentionBias(queryBlock.positions, each.positions, layer.window));
      return attend(queries, keyBlocks, concat(biases, -1), queryBlock.shape, getAttentionShape(config, layer));
    };
    const [keys, values] = [k, v].map((x) => padIntoBlocks(x, keyValueHeads, keyPadIndex));
    const visibleKeys = findVisibleKeys(config, packed, { withPrefix, keys, values });
    if (selectsStates && index === config.layers.length - 1) {
      const queries = padHeads(q, heads, headDim, selectedPadIndex);
      const attended = attendBlock(queries, packed.selected, visibleKeys.at(-1)!);
      return unpadHeads(attended, heads, headDim, selectedCount, selectedPadIndex);
    }
    const attended = padIntoBlocks(q, heads, queryPadIndex).map((queries, i) =>
      attendBlock(queries, blocks[i], visibleKeys[i]),
    );
    return unpadHeads(concat(attended, 0), heads, headDim, tokens, queryPadIndex);
  };
}

/**
 * Returns the keys that each block attends to: the common prefix to itself, prefixes to it and
 * themselves, rows to both and themselves.
 */
function findVisibleKeys(
  { keyValueHeads, headDim }: DecoderConfig,
  { commonPrefix, prefixes, rows }: PackedBlocks,
  {
    withPrefix,
    keys,
    values,
  }: { readonly withPrefix: boolean; readonly keys: readonly Node[]; readonly values: readonly Node[] },
): KeyBlock[][] {
  const { groups, tokens } = rows.shape;
  const createKeyBlock = (select: (blocks: readonly Node[]) => Node, positions: Node, isShared: boolean): KeyBlock => ({
    keys: select(keys),
    values: select(values),
    positions,
    isShared,
  });
  /** Concatenates the common prefix and each group's prefix. */
  const appendToCommonPrefix = (fromCommonPrefix: Node, fromPrefixes: Node): Node =>
    concat([expand(fromCommonPrefix, [groups, ...fromCommonPrefix.shape.slice(1)]), fromPrefixes], 2);
  const fromCommonPrefix = ([x]: readonly Node[]) => reshape(x, [1, keyValueHeads, commonPrefix.shape.tokens, headDim]);
  const fromPrefixes = ([, x]: readonly Node[]) => reshape(x, [groups, keyValueHeads, prefixes.shape.tokens, headDim]);
  const fromRows = (each: readonly Node[]) =>
    reshape(each.at(-1)!, [groups, keyValueHeads, rows.shape.rows, tokens, headDim]);
  const ownKeys = createKeyBlock(fromRows, rows.positions, false);
  if (!withPrefix) return [[ownKeys]];
  const beforeRows = createKeyBlock(
    (each) => appendToCommonPrefix(fromCommonPrefix(each), fromPrefixes(each)),
    appendToCommonPrefix(commonPrefix.positions, prefixes.positions),
    true,
  );
  return [[createKeyBlock(fromCommonPrefix, commonPrefix.positions, true)], [beforeRows], [beforeRows, ownKeys]];
}

/** Returns the inputs that select tokens; see `PackedBatch.selectPredictingStates`. */
function selectTokens(positions: PositionInputs, tokens: Dim): TokenSelection {
  const ids = input("selected_tokens", "int32", [positiveDim("states")]);
  const inverse = input("selected_tokens_inverse", "int32", [tokens]);
  return {
    select: (x) => gatherRowsWithInverse(x, ids, inverse),
    positions: {
      ropes: positions.ropes.map(({ cos, sin }) => ({ cos: gatherRows(cos, ids), sin: gatherRows(sin, ids) })),
      ids: undefined,
    },
  };
}
