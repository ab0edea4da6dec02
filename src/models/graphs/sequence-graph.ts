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
} from "../../engine/nn/attention.js";
import type { DecoderConfig } from "../../engine/nn/decoder-config.js";
import { decoder, type PositionInputs, type TokenSelection } from "../../engine/nn/decoder.js";
import type { ParameterScope } from "../../engine/nn/parameter-scope.js";

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
  /** The final states to return: all [tokens, width], or those selected by the batch [selected, width]. */
  readonly states: "all" | "selected";
  /** First layer to compute; above 0, the states before it are the input "frozen_states". */
  readonly first?: number;
  /** Layer before which to stop. */
  readonly end?: number;
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
 * Returns the final hidden states of sequences packed by `packSequences`: groups of rows behind a prefix that is
 * computed once, and the prefix common to all groups, which is computed once for all.
 */
export function sequenceGraph(
  config: DecoderConfig,
  scope: ParameterScope,
  { withPrefix, states, first = 0, end }: SequenceGraphOptions,
): Node {
  const { heads, keyValueHeads, headDim } = config;
  const [tokens, groups, rows] = ["tokens", "groups", "rows"].map(positiveDim);
  const createBlock = (name: string, shape: PaddedShape): QueryBlock => ({
    shape,
    positions: input(`${name}_positions`, "int32", [shape.groups, shape.rows, shape.tokens]),
  });
  const commonPrefix = createBlock("common_prefix", {
    groups: 1,
    rows: 1,
    tokens: positiveDim("common_prefix_tokens"),
  });
  const prefixes = createBlock("prefix", { groups, rows: 1, tokens: positiveDim("prefix_tokens") });
  const rowBlock = createBlock("row", { groups, rows, tokens: positiveDim("row_tokens") });
  const blocks = withPrefix ? [commonPrefix, prefixes, rowBlock] : [rowBlock];
  const paddedCounts = (headCount: number) =>
    blocks.map(({ shape }) => mulDims(shape.groups, shape.rows, headCount, shape.tokens));
  const padIndexInputs = (name: string, headCount: number): PadIndex => ({
    indices: input(`${name}_slots`, "int32", [addDims(...paddedCounts(headCount))]),
    inverse: input(`${name}_inverse`, "int32", [mulDims(tokens, headCount)]),
  });
  const queryPadIndex = padIndexInputs("query", heads);
  const keyPadIndex = padIndexInputs("key", keyValueHeads);
  const padIntoBlocks = (x: Node, headCount: number, padIndex: PadIndex): Node[] =>
    split(padHeads(x, headCount, headDim, padIndex), 0, paddedCounts(headCount));
  /** Concatenates the common prefix and each group's prefix. */
  const appendToCommonPrefix = (fromCommonPrefix: Node, fromPrefixes: Node): Node =>
    concat([expand(fromCommonPrefix, [groups, ...fromCommonPrefix.shape.slice(1)]), fromPrefixes], 2);
  const positionsBeforeRows = appendToCommonPrefix(commonPrefix.positions, prefixes.positions);

  const positions = positionInputs(config, tokens);
  const selection = states === "selected" ? selectTokens(positions, tokens) : undefined;
  /** Queries of the last layer, if only selected states are returned. */
  const selectedBlock = createBlock("selected", { groups, rows, tokens: positiveDim("row_selected") });
  const selectedCount = positiveDim("states");
  const selectedPadIndex: PadIndex = {
    indices: input("selected_slots", "int32", [mulDims(groups, rows, heads, selectedBlock.shape.tokens)]),
    inverse: input("selected_inverse", "int32", [mulDims(selectedCount, heads)]),
  };

  return decoder(
    config,
    scope,
    first === 0 ? input("tokens", "int32", [tokens]) : input(FROZEN_STATES, "float32", [tokens, config.hiddenSize]),
    positions,
    (q, k, v, layer, index) => {
      const attendBlock = (queries: Node, queryBlock: QueryBlock, keyBlocks: readonly KeyBlock[]): Node => {
        const biases = keyBlocks.map((each) => attentionBias(queryBlock.positions, each.positions, layer.window));
        return attend(queries, keyBlocks, concat(biases, -1), queryBlock.shape, getAttentionShape(config, layer));
      };
      const [keysByBlock, valuesByBlock] = [k, v].map((x) => padIntoBlocks(x, keyValueHeads, keyPadIndex));
      const createKeyBlock = (
        select: (blocks: readonly Node[]) => Node,
        positions: Node,
        isShared: boolean,
      ): KeyBlock => ({
        keys: select(keysByBlock),
        values: select(valuesByBlock),
        positions,
        isShared,
      });
      const fromCommonPrefix = ([x]: readonly Node[]) =>
        reshape(x, [1, keyValueHeads, commonPrefix.shape.tokens, headDim]);
      const fromPrefixes = ([, x]: readonly Node[]) =>
        reshape(x, [groups, keyValueHeads, prefixes.shape.tokens, headDim]);
      const fromRows = (each: readonly Node[]) =>
        reshape(each.at(-1)!, [groups, keyValueHeads, rows, rowBlock.shape.tokens, headDim]);
      const beforeRows = (each: readonly Node[]) => appendToCommonPrefix(fromCommonPrefix(each), fromPrefixes(each));
      // The common prefix attends to itself, prefixes to it and themselves, rows to both and themselves.
      const shared = withPrefix
        ? [
            createKeyBlock(fromCommonPrefix, commonPrefix.positions, true),
            createKeyBlock(beforeRows, positionsBeforeRows, true),
          ]
        : [];
      const visibleToRows = [...shared.slice(1), createKeyBlock(fromRows, rowBlock.positions, false)];
      if (selection !== undefined && index === config.layers.length - 1) {
        const attended = attendBlock(padHeads(q, heads, headDim, selectedPadIndex), selectedBlock, visibleToRows);
        return unpadHeads(attended, heads, headDim, selectedCount, selectedPadIndex);
      }
      const visibleToBlocks = [...shared.map((each) => [each]), visibleToRows];
      const attended = padIntoBlocks(q, heads, queryPadIndex).map((queries, i) =>
        attendBlock(queries, blocks[i], visibleToBlocks[i]),
      );
      return unpadHeads(concat(attended, 0), heads, headDim, tokens, queryPadIndex);
    },
    { selection, first, end },
  );
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
