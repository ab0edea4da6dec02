import { addDims, concat, input, mulDims, reshape, size, split, type Dim, type Node } from "../graph/index.js";
import { attend, attentionShape, intoSlots, outOfSlots, type Slots } from "../nn/attention.js";
import type { DecoderConfig } from "../nn/config.js";
import { decoder, type Positions } from "../nn/decoder.js";
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

/**
 * Final hidden states [tokens, width] of whole sequences, as packSequences lays them out: groups of rows behind a prefix
 * that is computed once. With `withPrefix` false the batch must have no prefixes; the graph is then shorter.
 */
export function sequenceGraph(config: DecoderConfig, scope: Scope, withPrefix: boolean): Node {
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
    positionInputs(config, tokens),
    (q, k, v, layer) => {
      const shape = attentionShape(config, layer);
      const parts = (x: Node, perKey: number, route: typeof queryRoute): Node[] => {
        const inSlots = intoSlots(x, perKey * keyValueHeads, headDim, route);
        const lengths = [
          mulDims(groups, perKey * keyValueHeads, prefixTokens),
          mulDims(groups, rows, perKey * keyValueHeads, rowTokens),
        ];
        return withPrefix ? split(inSlots, 0, lengths) : [inSlots];
      };
      const queries = parts(q, heads / keyValueHeads, queryRoute);
      const keyValues = [k, v].map((x) => parts(x, 1, keyRoute));
      const last = queries.length - 1;
      const [ownKeys, ownValues] = keyValues.map((x) =>
        reshape(x[last], [groups, keyValueHeads, rows, rowTokens, headDim]),
      );
      const ownSegment = { keys: ownKeys, values: ownValues, shared: false };
      const { own: ownBias, prefix: prefixBias } = bias(layer.window);
      if (prefixBias === undefined) {
        return outOfSlots(attend(queries[0], [ownSegment], ownBias, own, shape), heads, headDim, tokens, queryRoute);
      }
      const [prefixKeys, prefixValues] = keyValues.map((x) =>
        reshape(x[0], [groups, keyValueHeads, prefixTokens, headDim]),
      );
      const prefixSegment = { keys: prefixKeys, values: prefixValues, shared: true };
      const attended = concat(
        [
          attend(queries[0], [prefixSegment], prefixBias, shared, shape),
          attend(queries[1], [prefixSegment, ownSegment], ownBias, own, shape),
        ],
        0,
      );
      return outOfSlots(attended, heads, headDim, tokens, queryRoute);
    },
  );
}
