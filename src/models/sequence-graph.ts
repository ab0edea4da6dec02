import {
  addDims,
  concat,
  expand,
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
 * Final hidden states of whole sequences, as packSequences lays them out: groups of rows behind a prefix that is computed once,
 * and what all prefixes begin with, the root, computed once for all groups.
 */
export function sequenceGraph(config: DecoderConfig, scope: Scope, { withPrefix, states }: SequenceGraphOptions): Node {
  const { heads, keyValueHeads, headDim } = config;
  const [tokens, groups, rows, rowTokens] = ["tokens", "groups", "rows", "row_tokens"].map(size);
  const rootTokens: Dim = withPrefix ? size("root_tokens") : 0;
  const prefixTokens: Dim = withPrefix ? size("prefix_tokens") : 0;
  const slotsOfRoot: Slots = { groups: 1, rows: 1, tokens: rootTokens };
  const slotsOfPrefixes: Slots = { groups, rows: 1, tokens: prefixTokens };
  const slotsOfRows: Slots = { groups, rows, tokens: rowTokens };
  /** Slots of the root, of the prefixes and of the rows, for so many heads. */
  const slotCounts = (count: number) =>
    (withPrefix ? [slotsOfRoot, slotsOfPrefixes, slotsOfRows] : [slotsOfRows]).map((slots) =>
      mulDims(slots.groups, slots.rows, count, slots.tokens),
    );
  const routeInputs = (name: string, count: number) => ({
    slots: input(`${name}_slots`, "int32", [addDims(...slotCounts(count))]),
    inverse: input(`${name}_inverse`, "int32", [mulDims(tokens, count)]),
  });
  const queryRoute = routeInputs("query", heads);
  const keyRoute = routeInputs("key", keyValueHeads);
  const rowPositions = input("row_positions", "int32", [groups, rows, rowTokens]);
  const prefixPositions = input("prefix_positions", "int32", [groups, 1, prefixTokens]);
  const rootPositions = input("root_positions", "int32", [1, 1, rootTokens]);
  /** What stands before the rows of each group. */
  const behindRoot = (root: Node, prefixes: Node, axis: number): Node =>
    concat([expand(root, [groups, ...root.shape.slice(1)]), prefixes], axis);
  const positionsBefore = behindRoot(rootPositions, prefixPositions, 2);

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
    const seen = withPrefix ? concat([visibilityBias(readPositions, positionsBefore, layer.window), toOwn], -1) : toOwn;
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

  return decoder(
    config,
    scope,
    input("tokens", "int32", [tokens]),
    positions,
    (q, k, v, layer, index) => {
      const shape = attentionShape(config, layer);
      const parts = (x: Node, count: number, route: typeof queryRoute): Node[] =>
        split(intoSlots(x, count, headDim, route), 0, slotCounts(count));
      const keyValues = [k, v].map((x) => parts(x, keyValueHeads, keyRoute));
      const segment = ([keys, values]: readonly Node[], shared: boolean): Segment => ({ keys, values, shared });
      const ownSegment = segment(
        keyValues.map((x) => reshape(x.at(-1)!, [groups, keyValueHeads, rows, rowTokens, headDim])),
        false,
      );
      const before = () => {
        const roots = keyValues.map(([x]) => reshape(x, [1, keyValueHeads, rootTokens, headDim]));
        const prefixes = keyValues.map(([, x]) => reshape(x, [groups, keyValueHeads, prefixTokens, headDim]));
        const both = roots.map((root, i) => behindRoot(root, prefixes[i], 2));
        return { root: segment(roots, true), beforeRows: segment(both, true) };
      };
      const shared = withPrefix ? before() : undefined;
      if (reads !== undefined && index === config.layers.length - 1) {
        return readAttention(q, shared === undefined ? [ownSegment] : [shared.beforeRows, ownSegment], layer);
      }
      const queries = parts(q, heads, queryRoute);
      const bias = (asking: Node, asked: Node) => visibilityBias(asking, asked, layer.window);
      const toOwn = bias(rowPositions, rowPositions);
      const attended =
        shared === undefined
          ? [attend(queries[0], [ownSegment], toOwn, slotsOfRows, shape)]
          : [
              attend(queries[0], [shared.root], bias(rootPositions, rootPositions), slotsOfRoot, shape),
              attend(queries[1], [shared.beforeRows], bias(prefixPositions, positionsBefore), slotsOfPrefixes, shape),
              attend(
                queries[2],
                [shared.beforeRows, ownSegment],
                concat([bias(rowPositions, positionsBefore), toOwn], -1),
                slotsOfRows,
                shape,
              ),
            ];
      return outOfSlots(concat(attended, 0), heads, headDim, tokens, queryRoute);
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
