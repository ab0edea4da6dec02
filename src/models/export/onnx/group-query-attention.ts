import { apply, defineOperation, type Node, output, addDims } from "../../../engine/graph/index.js";
import { dtypes } from "../../../engine/tensor/index.js";

interface GroupQueryAttentionAttributes {
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly scale: number;
  readonly window: number | undefined;
  readonly softcap: number | undefined;
}

/** Inputs of `groupQueryAttention`. */
export interface GroupQueryAttentionInputs {
  /** [batch, tokens, heads * headDim], rotated. */
  readonly query: Node;
  /** [batch, tokens, keyValueHeads * headDim], rotated. */
  readonly key: Node;
  readonly value: Node;
  /** [batch, keyValueHeads, past, headDim]. */
  readonly pastKey: Node;
  readonly pastValue: Node;
  /** int64 [batch, past + tokens]. */
  readonly attentionMask: Node;
}

/**
 * ONNX Runtime's causal attention over a cache to which it appends the new keys and values; for
 * export only.
 */
const groupQueryAttentionOperation = defineOperation<GroupQueryAttentionAttributes>({
  name: "groupQueryAttention",
  infer: ([query, , , pastKey]) => {
    const [batch, heads, past, headDim] = pastKey.shape;
    const present = { dtype: query.dtype, shape: [batch, heads, addDims(past, query.shape[1]), headDim] };
    return [{ dtype: query.dtype, shape: query.shape }, present, present];
  },
  gradient: () => [],
  onnx: ({ inputs, attributes: { heads, keyValueHeads, scale, window, softcap }, emitter }) => {
    const mask = inputs[5];
    const toInt32 = (value: string) => emitter.emit("Cast", [value], { to: dtypes.int32.onnx });
    const lastIndices = emitter.emitOnce("last indices", () => {
      const lengths = emitter.emit("ReduceSum", [mask, emitter.ints([1])], { keepdims: 0 });
      return toInt32(emitter.emit("Sub", [lengths, emitter.ints([1])]));
    });
    const totalLength = emitter.emitOnce("total length", () =>
      toInt32(emitter.emit("Squeeze", [emitter.emit("Shape", [mask], { start: 1, end: 2 })])),
    );
    return emitter.emitAll("GroupQueryAttention", [...inputs.slice(0, 5), lastIndices, totalLength], 3, {
      num_heads: heads,
      kv_num_heads: keyValueHeads,
      scale: { float: scale },
      ...(window === undefined ? {} : { local_window_size: window }),
      ...(softcap === undefined ? {} : { softcap: { float: softcap } }),
    });
  },
});

/** Attends and returns the output [batch, tokens, heads * headDim] and the extended cache. */
export function groupQueryAttention(
  { query, key, value, pastKey, pastValue, attentionMask }: GroupQueryAttentionInputs,
  attributes: GroupQueryAttentionAttributes,
): { readonly attended: Node; readonly presentKey: Node; readonly presentValue: Node } {
  const node = apply(groupQueryAttentionOperation, [query, key, value, pastKey, pastValue, attentionMask], attributes);
  return { attended: node, presentKey: output(node, 1), presentValue: output(node, 2) };
}
