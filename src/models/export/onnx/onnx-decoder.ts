import {
  cast,
  dim,
  dimValue,
  gatherRows,
  input,
  less,
  mulDims,
  positiveDim,
  reshape,
  scalar,
  weight,
  where,
  type Node,
} from "../../../engine/graph/index.js";
import {
  getAttentionShape,
  type DecoderConfig,
  type RopeConfig,
  decoder,
  type ParameterScope,
  computeRopeTables,
} from "../../../engine/nn/index.js";
import { vocabularyLogits } from "../../graphs/policy-nodes.js";
import { groupQueryAttention } from "./group-query-attention.js";

/** A table of rotations, stored with the weights. */
export type RopeTables = ReadonlyMap<string, Float32Array>;

/**
 * Builds the graph that transformers.js runs. Inputs: input_ids and position_ids [batch, tokens],
 * attention_mask [batch, past + tokens], past_key_values.N.key and .value [batch, heads, past,
 * width]. Outputs: logits [batch, tokens, vocabulary], present.N.key and .value. The tables of
 * rotations are weights that `tables` receives.
 */
export function onnxDecoder(
  config: DecoderConfig,
  scope: ParameterScope,
  tables: Map<string, Float32Array>,
): Record<string, Node> {
  const { keyValueHeads, headDim, vocabSize } = config;
  const [batch, length] = [positiveDim("batch_size"), positiveDim("sequence_length")];
  const [past, total] = [dim("past_sequence_length"), positiveDim("total_sequence_length")];
  const tokens = mulDims(batch, length);
  const flat = (name: string) => cast(reshape(input(name, "int64", [batch, length]), [tokens]), "int32");
  const attentionMask = input("attention_mask", "int64", [batch, total]);
  const positions = flat("position_ids");
  const present: Record<string, Node> = {};
  const hidden = decoder(
    config,
    scope,
    flat("input_ids"),
    {
      ropes: config.ropes.map((rope, i) => ropeNodes(config, rope, i, positions, total, tables)),
      ids: config.names.positions === undefined ? undefined : positions,
    },
    (q, k, v, layer, index) => {
      const unflatten = (x: Node) => reshape(x, [batch, length, x.shape[1]]);
      const cached = (kind: string) =>
        input(`past_key_values.${index}.${kind}`, "float32", [batch, keyValueHeads, past, headDim]);
      const { attended, presentKey, presentValue } = groupQueryAttention(
        {
          query: unflatten(q),
          key: unflatten(k),
          value: unflatten(v),
          pastKey: cached("key"),
          pastValue: cached("value"),
          attentionMask,
        },
        { ...getAttentionShape(config, layer), window: layer.window },
      );
      present[`present.${index}.key`] = presentKey;
      present[`present.${index}.value`] = presentValue;
      return reshape(attended, [tokens, q.shape[1]]);
    },
  );
  const logits = reshape(vocabularyLogits(config, scope, hidden), [batch, length, vocabSize]);
  return { logits, ...present };
}

/** Rows of the tables of rotations for each token. LongRoPE has two, chosen by the whole length. */
function ropeNodes(
  { maxPositions }: DecoderConfig,
  rope: RopeConfig,
  index: number,
  positions: Node,
  total: ReturnType<typeof dim>,
  tables: Map<string, Float32Array>,
): { cos: Node; sin: Node } {
  const all = Float64Array.from({ length: maxPositions }, (_, position) => position);
  const rows = (kind: "cos" | "sin", sequenceLength: number, suffix: string): Node => {
    const name = `rope.${index}.${kind}${suffix}`;
    tables.set(name, computeRopeTables(rope, all, sequenceLength)[kind]);
    return gatherRows(weight(name, "float32", [maxPositions, rope.rotaryDim / 2]), positions);
  };
  const { scaling } = rope;
  if (scaling.kind !== "longrope") return { cos: rows("cos", 0, ""), sin: rows("sin", 0, "") };
  const { originalLength } = scaling;
  const isLong = less(scalar(originalLength), dimValue(total));
  const choose = (kind: "cos" | "sin") =>
    where(isLong, rows(kind, originalLength + 1, "_long"), rows(kind, originalLength, "_short"));
  return { cos: choose("cos"), sin: choose("sin") };
}
