import { LlamaGymError } from "../core/errors.js";
import {
  add,
  addMatmul,
  dequantize,
  dropout,
  input,
  int8GradientMatmul,
  less,
  matmul,
  quantizedMatmul,
  type QuantizedWeight,
  scalar,
  stopGradient,
  transpose,
  weight,
  where,
  withGradientOf,
  type Node,
} from "../engine/graph/index.js";
import type { DType } from "../engine/tensor/dtype.js";
import type { ParameterScope } from "../engine/nn/parameter-scope.js";
import { loraAName, loraBName, type LoraModule } from "./adapters/lora-config.js";
import { BLOCK_SIZE } from "./weights/quantize.js";

/** A parameter as the graph reads it. */
export type StoredParameter =
  | { readonly kind: "frozen"; readonly shape: readonly number[] }
  | { readonly kind: "trained"; readonly shape: readonly number[] }
  | {
      readonly kind: "quantised";
      readonly shape: readonly number[];
      readonly bits: 4 | 8;
    };

/** The parts of a quantised parameter, as graphs name them behind its own name. */
export const QUANTIZED_PARTS = ["bytes", "codes", "scales", "zero_points"] as const;

export type QuantizedParameter = Extract<StoredParameter, { kind: "quantised" }>;

/** How gradients flow back through frozen weights. */
export type BackwardPrecision = "float32" | "int8";

export interface ParameterScopeOptions {
  readonly parameters: ReadonlyMap<string, StoredParameter>;
  /** Weights are stored [in, out]. */
  readonly transposedWeights: boolean;
  readonly adapter: ReadonlyMap<string, LoraModule>;
  /**
   * "merged": W + s B A is computed once and used for all tokens, forward and backward, which pays where they are many for
   * its width (see bestAdapterForm); "separate": W x + s B (A x), which keeps W a constant that the runtime may pack.
   */
  readonly adapterMode: "merged" | "separate";
  /**
   * "int8" computes the gradients that flow back through frozen weights in 8 bits; values stay exact, and so does how an
   * adapter's gradient follows from these. Not for weights that an adapter is merged into, nor for quantised ones.
   */
  readonly backwardPrecision?: BackwardPrecision;
  /** Probability that the adapter's path drops an input; needs the "separate" form. */
  readonly adapterDropout?: number;
}

/** Input: uniform noise that decides what is dropped, the same for all layers, each from an offset of its own. */
export const DROPOUT_NOISE = "dropout_noise";

/** Long enough that neighbouring layers do not share much of it, short enough to draw anew at every step. */
export const DROPOUT_NOISE_LENGTH = 2 ** 18 + 3;

/** Between the offsets of two uses of the noise; coprime to its length. */
const DROPOUT_STRIDE = 39_119;

/** A model's parameters as nodes: frozen ones lie outside the graph, trained ones are inputs. */
export class ModelParameterScope implements ParameterScope {
  /** The trained parameters that were asked for, by name. */
  readonly trainableInputs = new Map<string, Node>();
  private dropoutCount = 0;

  constructor(private readonly options: ParameterScopeOptions) {}

  has(name: string): boolean {
    return this.options.parameters.has(name);
  }

  tensor(name: string): Node {
    const parameter = this.options.parameters.get(name);
    if (parameter === undefined) {
      throw new LlamaGymError("WEIGHTS_MISMATCH", `The model has no tensor "${name}", which its architecture needs.`);
    }
    switch (parameter.kind) {
      case "frozen":
        return weight(name, "float32", parameter.shape);
      case "trained":
        return this.getTrainableInput(name, parameter.shape);
      case "quantised":
        return this.dequantizeWeight(name, parameter);
    }
  }

  linear(module: string, x: Node): Node {
    const name = `${module}.weight`;
    const lora = this.options.adapter.get(module);
    const output = lora === undefined ? this.multiplyWeight(name, x) : this.multiplyAdapted(lora, x);
    const bias = `${module}.bias`;
    return this.has(bias) ? add(output, this.tensor(bias)) : output;
  }

  /** x through a weight as it is stored. */
  private multiplyWeight(name: string, x: Node): Node {
    const parameter = this.options.parameters.get(name);
    const layout = { transposeB: !this.options.transposedWeights };
    if (parameter?.kind !== "quantised") {
      const usesInt8Gradient = this.options.backwardPrecision === "int8" && parameter?.kind === "frozen";
      return (usesInt8Gradient ? int8GradientMatmul : matmul)(x, this.tensor(name), layout);
    }
    return quantizedMatmul(x, this.getQuantizedParts(name, parameter), { bits: parameter.bits, blockSize: BLOCK_SIZE });
  }

  private dequantizeWeight(name: string, parameter: QuantizedParameter): Node {
    const { codes, scales, zeroPoints } = this.getQuantizedParts(name, parameter);
    return dequantize(codes, scales, zeroPoints, BLOCK_SIZE);
  }

  private getQuantizedParts(name: string, { shape: [rows, columns], bits }: QuantizedParameter): QuantizedWeight {
    const blocks = columns / BLOCK_SIZE;
    const codeType = bits === 4 ? "uint4" : "uint8";
    const createPart = (suffix: (typeof QUANTIZED_PARTS)[number], dtype: DType, shape: readonly number[]) =>
      weight(`${name}.${suffix}`, dtype, shape);
    return {
      bytes: createPart("bytes", "uint8", [rows, blocks, (BLOCK_SIZE * bits) / 8]),
      codes: createPart("codes", codeType, [rows, columns]),
      scales: createPart("scales", "float32", [rows, blocks]),
      zeroPoints: createPart("zero_points", codeType, [rows, blocks]),
    };
  }

  applyHeadAdapter(x: Node): Node | undefined {
    const lora = this.findAdapter("head");
    return lora === undefined ? undefined : this.multiplyLowRank(lora, this.applyAdapterDropout(x));
  }

  applyEmbeddingAdapter(gather: (table: Node) => Node): Node | undefined {
    const lora = this.findAdapter("embedding");
    if (lora === undefined) return undefined;
    const { a, b } = this.getLoraFactors(lora);
    return matmul(gather(transpose(a, [1, 0])), b, { transposeB: true, alpha: lora.scaling });
  }

  private findAdapter(kind: LoraModule["kind"]): LoraModule | undefined {
    return [...this.options.adapter.values()].find((lora) => lora.kind === kind);
  }

  private getLoraFactors(lora: LoraModule): { a: Node; b: Node } {
    return {
      a: this.getTrainableInput(loraAName(lora), [lora.rank, lora.inFeatures]),
      b: this.getTrainableInput(loraBName(lora), [lora.outFeatures, lora.rank]),
    };
  }

  /** scaling * B (A x). */
  private multiplyLowRank(lora: LoraModule, x: Node): Node {
    const { a, b } = this.getLoraFactors(lora);
    return matmul(matmul(x, a, { transposeB: true }), b, { transposeB: true, alpha: lora.scaling });
  }

  private multiplyAdapted(lora: LoraModule, x: Node): Node {
    const { module, scaling } = lora;
    const transposeB = !this.options.transposedWeights;
    // Quantised weights are never widened to be merged with an adapter: that is what they are quantised for.
    const isQuantized = this.options.parameters.get(`${module}.weight`)?.kind === "quantised";
    if (isQuantized || this.options.adapterMode === "separate") {
      return add(this.multiplyWeight(`${module}.weight`, x), this.multiplyLowRank(lora, this.applyAdapterDropout(x)));
    }
    const { a, b } = this.getLoraFactors(lora);
    const stored = this.tensor(`${module}.weight`);
    const merged = transposeB
      ? addMatmul(stored, b, a, { alpha: scaling })
      : addMatmul(stored, a, b, { transposeA: true, transposeB: true, alpha: scaling });
    // The product with the merged weight gives dx; the skinny products, which are never run forward, give dA and dB.
    return withGradientOf(matmul(x, stopGradient(merged), { transposeB }), this.multiplyLowRank(lora, stopGradient(x)));
  }

  private applyAdapterDropout(x: Node): Node {
    return this.applyDropout(x, this.options.adapterDropout ?? 0);
  }

  /** x with values dropped at random and the others scaled up to make good for them. */
  applyDropout(x: Node, probability: number): Node {
    if (probability === 0) return x;
    const noise = input(DROPOUT_NOISE, "float32", [DROPOUT_NOISE_LENGTH]);
    const pattern = where(less(noise, scalar(probability)), 0, 1 / (1 - probability));
    return dropout(x, pattern, (this.dropoutCount++ * DROPOUT_STRIDE) % DROPOUT_NOISE_LENGTH);
  }

  getTrainableInput(name: string, shape: readonly number[]): Node {
    const existing = this.trainableInputs.get(name);
    if (existing !== undefined) return existing;
    const node = input(name, "float32", shape);
    this.trainableInputs.set(name, node);
    return node;
  }
}
