import { add, matmul, reshape, sigmoid, type Node } from "../graph/index.js";

/**
 * Architecture of the value head: "linear" is dropout and one layer (TRL); "mlp" is three layers
 * with sigmoids between, hidden-1024-1024-1 (Lamorel).
 */
export interface ValueHeadConfig {
  readonly kind: "linear" | "mlp";
  /** Dropout probability of the hidden state during training. */
  readonly dropout: number;
}

export const VALUE_HEAD_DEFAULTS: ValueHeadConfig = { kind: "linear", dropout: 0.1 };

const MLP_WIDTH = 1024;

interface ValueLayer {
  readonly name: string;
  readonly inFeatures: number;
  readonly outFeatures: number;
}

/** Returns the linear layers of a value head under TRL's names ("v_head.summary"). */
export function getValueHeadLayers({ kind }: ValueHeadConfig, hiddenSize: number): ValueLayer[] {
  if (kind === "linear") return [{ name: "v_head.summary", inFeatures: hiddenSize, outFeatures: 1 }];
  const widths = [hiddenSize, MLP_WIDTH, MLP_WIDTH, 1];
  return widths.slice(1).map((outFeatures, i) => ({ name: `v_head.${i}`, inFeatures: widths[i], outFeatures }));
}

/** Whether a parameter belongs to a value head. */
export function isValueHeadParameter(parameter: string): boolean {
  return parameter.startsWith("v_head.");
}

/**
 * Computes values [rows] of hidden states [rows, width]; `parameter` returns a layer's weight [out,
 * in] or bias [out] by name.
 */
export function valueHead(
  config: ValueHeadConfig,
  hidden: Node,
  parameter: (name: string, shape: readonly number[]) => Node,
): Node {
  const layers = getValueHeadLayers(config, hidden.shape[1] as number);
  const values = layers.reduce((x, { name, inFeatures, outFeatures }, i) => {
    const weight = parameter(`${name}.weight`, [outFeatures, inFeatures]);
    const linear = add(matmul(x, weight, { transposeB: true }), parameter(`${name}.bias`, [outFeatures]));
    return i < layers.length - 1 ? sigmoid(linear) : linear;
  }, hidden);
  return reshape(values, [hidden.shape[0]]);
}
