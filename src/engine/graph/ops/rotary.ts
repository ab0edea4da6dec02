import { sameShape } from "../dim.js";
import { apply, defineOperation, shapeError, type Node } from "../node.js";
import { neg } from "./elementwise.js";
import { ifNonEmpty } from "./if-non-empty.js";

export interface RotaryAttributes {
  readonly heads: number;
}

/**
 * Rotary position embedding (Su et al. 2021) that rotates the first half of the rotated dimensions
 * against the second: x [tokens, heads * headDim] by cos and sin [tokens, rotaryDim / 2]. The first
 * rotaryDim dimensions of each head are rotated.
 */
export const rotaryOperation = defineOperation<RotaryAttributes>({
  name: "rotary",
  infer: (inputs, { heads }) => {
    const [x, cos, sin] = inputs;
    const [tokens, width] = x.shape;
    const half = cos.shape[1];
    const tables = [cos, sin].every(({ shape }) => sameShape(shape, [tokens, half]));
    const isStatic = typeof width === "number" && typeof half === "number";
    const fits = x.shape.length === 2 && tables && isStatic && width % heads === 0 && 2 * half <= width / heads;
    if (!fits) {
      const expected = `x [tokens, ${heads} * headDim] and tables [tokens, rotaryDim / 2] with rotaryDim <= headDim`;
      throw shapeError("rotary", inputs, expected);
    }
    return { dtype: x.dtype, shape: x.shape };
  },
  gradient: ({ inputs: [, cos, sin], attributes: { heads }, upstream }) => [
    rotary(upstream, cos, neg(sin), heads),
    undefined,
    undefined,
  ],
  onnx: ({ node, inputs: [x, cos, sin], attributes: { heads }, emitter }) => {
    const [tokens, width] = node.shape;
    const rotaryDim = 2 * (node.inputs[1].shape[1] as number);
    const partial = rotaryDim !== (width as number) / heads;
    return ifNonEmpty([tokens], node, emitter, (into) => {
      const batched = into.emit("Unsqueeze", [x, into.ints([0])]);
      const offset = into.ints([0]);
      const rotated = into.emit("RotaryEmbedding", [batched, offset, cos, sin], {
        num_heads: heads,
        rotary_embedding_dim: partial ? rotaryDim : 0,
      });
      return into.emit("Squeeze", [rotated, into.ints([0])]);
    });
  },
});

/**
 * Rotates x [tokens, heads * headDim] by each token's position, given as cos and sin [tokens,
 * rotaryDim / 2].
 */
export function rotary(x: Node, cos: Node, sin: Node, heads: number): Node {
  return apply(rotaryOperation, [x, cos, sin], { heads });
}
