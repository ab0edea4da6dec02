import { concat, gatherRows, input, mul, mulDims, reshape, size, softmax, symbol, type Node } from "../graph/index.js";
import { attend, attentionShape, intoSlots, outOfSlots } from "../nn/attention.js";
import type { DecoderConfig } from "../nn/config.js";
import { decoder } from "../nn/decoder.js";
import type { Scope } from "../nn/scope.js";
import { visibilityBias } from "../nn/visibility.js";
import { vocabularyLogits } from "./policy.js";
import { positionInputs } from "./sequence-graph.js";

/**
 * One step of decoding, or the reading of many prompt tokens at once: new tokens attend to a prefix shared by all rows, to
 * what each row's cache holds, and to one another.
 * Inputs beside the tokens: prefix_key_i and prefix_value_i [1, heads, prefix, width], cache_key_i and cache_value_i
 * [1, heads, rows, capacity, width], positions of each; "select" names the flat tokens whose scores are wanted.
 * Outputs: key_i and value_i [tokens, heads * width] of the new tokens, and for the selected tokens logits, plain
 * probabilities and probabilities at a temperature, each [selected, vocabulary], and what `valuesOf` reads in their hidden
 * states [selected, hidden]: values [selected].
 */
export function cachedGraph(
  config: DecoderConfig,
  scope: Scope,
  valuesOf: (hidden: Node) => Node | undefined = () => undefined,
): Record<string, Node> {
  const { heads, keyValueHeads, headDim } = config;
  const [tokens, rows, rowTokens, prefix, capacity] = ["tokens", "rows", "row_tokens", "prefix", "capacity"].map(size);
  const selected = symbol("selected");
  const routeInputs = (name: string, count: number) => ({
    slots: input(`${name}_slots`, "int32", [mulDims(count, rows, rowTokens)]),
    inverse: input(`${name}_inverse`, "int32", [mulDims(tokens, count)]),
  });
  const queryRoute = routeInputs("query", heads);
  const keyRoute = routeInputs("key", keyValueHeads);
  const rowPositions = input("row_positions", "int32", [1, rows, rowTokens]);
  const prefixPositions = input("prefix_positions", "int32", [1, 1, prefix]);
  const cachePositions = input("cache_positions", "int32", [1, rows, capacity]);
  const outputs: Record<string, Node> = {};

  const hidden = decoder(
    config,
    scope,
    input("tokens", "int32", [tokens]),
    positionInputs(config, tokens),
    (q, k, v, layer, index) => {
      outputs[`key_${index}`] = k;
      outputs[`value_${index}`] = v;
      const fresh = (x: Node) =>
        reshape(intoSlots(x, keyValueHeads, headDim, keyRoute), [1, keyValueHeads, rows, rowTokens, headDim]);
      const shared = (kind: string) => input(`prefix_${kind}_${index}`, "float32", [1, keyValueHeads, prefix, headDim]);
      const cached = (kind: string) =>
        input(`cache_${kind}_${index}`, "float32", [1, keyValueHeads, rows, capacity, headDim]);
      const segments = [
        { keys: shared("key"), values: shared("value"), shared: true },
        { keys: cached("key"), values: cached("value"), shared: false },
        { keys: fresh(k), values: fresh(v), shared: false },
      ];
      const bias = concat(
        [prefixPositions, cachePositions, rowPositions].map((keys) => visibilityBias(rowPositions, keys, layer.window)),
        -1,
      );
      const attended = attend(
        intoSlots(q, heads, headDim, queryRoute),
        segments,
        bias,
        { groups: 1, rows, tokens: rowTokens },
        attentionShape(config, layer),
      );
      return outOfSlots(attended, heads, headDim, tokens, queryRoute);
    },
  );

  const chosen = gatherRows(hidden, input("select", "int32", [selected]));
  const logits = vocabularyLogits(config, scope, chosen);
  const values = valuesOf(chosen);
  return {
    ...outputs,
    ...(values === undefined ? {} : { values }),
    logits,
    plain: softmax(logits),
    tempered: softmax(mul(logits, input("inverse_temperature", "float32", [selected, 1]))),
  };
}
