import {
  addDims,
  concat,
  gatherRows,
  input,
  mulDims,
  reshape,
  routeRows,
  size,
  split,
  type Dim,
  type Node,
} from "../graph/index.js";
import { attend, attentionShape, intoSlots, outOfSlots, type Segment, type Slots } from "../nn/attention.js";
import type { DecoderConfig, LayerConfig } from "../nn/config.js";
import { decoder, type Positions, type ReadTokens } from "../nn/decoder.js";
import type { Scope } from "../nn/scope.js";
import { visibilityBias } from "../nn/visibility.js";

/** Inputs that say where each token stands, the same for every graph of a model. */
export function positionInputs(config: DecoderConfig, tokens: Dim): Positions {
  return {
    ropes: config.ropes.map(({ rotaryDim }, i) => ({
      cos: input(`cos_${i}`, "float32", [tokens, rotaryDim / 2]),
      sin: input(`sin_${i}`, "float32", [tokens, rotaryDim / 2]),
    })),
    ids: config.names.positions === undefined ? undefined : input("positions", "int32", [tokens]),
  };
}

interface SequenceGraphOptions {
  /** Without prefixes in the batch the graph is shorter. */
  readonly withPrefix: boolean;
  /** Whose final states are given: all tokens', [tokens, width], or those that `PackedBatch.read` names, [reads, width]. */
  readonly states: "all" | "read";
}

/**
 * Final hidden states of whole sequences, as packSequences lays them out: groups of rows behind a prefix that is computed once.
 */
export function sequenceGraph(config: DecoderConfig, scope: Scope, { withPrefix, states }: SequenceGraphOptions): Node {
  const { heads, keyValueHeads, headDim } = config;
  const [tokens, groups, rows, rowTokens] = ["tokens", "groups", "rows", "row_tokens"].map(size);
  const prefixTokens: Dim = withPrefix ? size("prefix_tokens") : 0;
  const own: Slots = { groups, rows, tokens: rowTokens };
  const shared: Slots = { groups, rows: 1, tokens: prefixTokens };
  const slotCount = (perRow: number) =>
    addDims(mulDims(groups, perRow, prefixTokens), mulDims(groups, rows, perRow, rowTokens));
  const routeInputs = (name: string, count: number) => ({
    slots: input(`${name}_slots`, "int32", [slotCount(count)]),
    inverse: input(`${name}_inverse`, "int32", [mulDims(tokens, count)]),
  });
  const queryRoute = routeInputs("query", heads);
  const keyRoute = routeInputs("key", keyValueHeads);
  const rowPositions = input("row_positions", "int32", [groups, rows, rowTokens]);
  const prefixPositions = input("prefix_positions", "int32", [groups, prefixTokens]);
  const prefixAsRow = reshape(prefixPositions, [groups, 1, prefixTokens]);

  const positions = positionInputs(config, tokens);
  const reads = states === "read" ? readTokens(positions, tokens) : undefined;
  const [readCount, rowReads] = [size("reads"), size("row_reads")];
  const readRoute = {
    slots: input("read_slots", "int32", [mulDims(groups, rows, heads, rowReads)]),
    inverse: input("read_inverse", "int32", [mulDims(readCount, heads)]),
  };
  const readPositions = input("read_positions", "int32", [groups, rows, rowReads]);

  /** The last layer's attention, where only some tokens ask. */
  const readAttention = (query: Node, segments: readonly Segment[], layer: LayerConfig): Node => {
    const toOwn = visibilityBias(readPositions, rowPositions, layer.window);
    const seen = withPrefix ? concat([visibilityBias(readPositions, prefixAsRow, layer.window), toOwn], -1) : toOwn;
    const slots: Slots = { groups, rows, tokens: rowReads };
    const inSlots = intoSlots(query, heads, headDim, readRoute);
    return outOfSlots(
      attend(inSlots, segments, seen, slots, attentionShape(config, layer)),
      heads,
      headDim,
      readCount,
      readRoute,
    );
  };

  const bias = (window: number | undefined) => {
    const toOwn = visibilityBias(rowPositions, rowPositions, window);
    if (!withPrefix) return { own: toOwn, prefix: undefined };
    return {
      own: concat([visibilityBias(rowPositions, prefixAsRow, window), toOwn], -1),
      prefix: visibilityBias(prefixAsRow, prefixAsRow, window),
    };
  };

  return decoder(
    config,
    scope,
    input("tokens", "int32", [tokens]),
    positions,
    (q, k, v, layer, index) => {
      const shape = attentionShape(config, layer);
      const parts = (x: Node, perKey: number, route: typeof queryRoute): Node[] => {
        const inSlots = intoSlots(x, perKey * keyValueHeads, headDim, route);
        const lengths = [
          mulDims(groups, perKey * keyValueHeads, prefixTokens),
          mulDims(groups, rows, perKey * keyValueHeads, rowTokens),
        ];
        return withPrefix ? split(inSlots, 0, lengths) : [inSlots];
      };
      const keyValues = [k, v].map((x) => parts(x, 1, keyRoute));
      const last = keyValues[0].length - 1;
      const [ownKeys, ownValues] = keyValues.map((x) =>
        reshape(x[last], [groups, keyValueHeads, rows, rowTokens, headDim]),
      );
      const ownSegment = { keys: ownKeys, values: ownValues, shared: false };
      const prefixSegment = () => {
        const [keys, values] = keyValues.map((x) => reshape(x[0], [groups, keyValueHeads, prefixTokens, headDim]));
        return { keys, values, shared: true };
      };
      const segments = withPrefix ? [prefixSegment(), ownSegment] : [ownSegment];
      if (reads !== undefined && index === config.layers.length - 1) return readAttention(q, segments, layer);
      const queries = parts(q, heads / keyValueHeads, queryRoute);
      const { own: ownBias, prefix: prefixBias } = bias(layer.window);
      if (prefixBias === undefined) {
        return outOfSlots(attend(queries[0], segments, ownBias, own, shape), heads, headDim, tokens, queryRoute);
      }
      const attended = concat(
        [
          attend(queries[0], segments.slice(0, 1), prefixBias, shared, shape),
          attend(queries[1], segments, ownBias, own, shape),
        ],
        0,
      );
      return outOfSlots(attended, heads, headDim, tokens, queryRoute);
    },
    reads,
  );
}

/** The inputs that say which tokens are read; see `PackedBatch.read`. */
function readTokens(positions: Positions, tokens: Dim): ReadTokens {
  const ids = input("read_tokens", "int32", [size("reads")]);
  const inverse = input("read_tokens_inverse", "int32", [tokens]);
  return {
    pick: (x) => routeRows(x, ids, inverse),
    positions: {
      ropes: positions.ropes.map(({ cos, sin }) => ({ cos: gatherRows(cos, ids), sin: gatherRows(sin, ids) })),
      ids: undefined,
    },
  };
}
