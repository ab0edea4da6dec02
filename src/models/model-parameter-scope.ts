import { LlamaGymError } from "../core/errors.js";
import {
  add,
  addMatmul,
  cast,
  concat,
  constant,
  dequantize,
  dropout,
  gatherRows,
  input,
  int8GradientMatmul,
  int8WeightMatmul,
  div,
  less,
  matmul,
  mul,
  reduceSum,
  quantizedMatmul,
  reshape,
  scalar,
  scatterAddRows,
  split,
  sqrt,
  square,
  stopGradient,
  sub,
  transpose,
  weight,
  where,
  withGradientOf,
  ZERO_CODE,
  type Int8Weight,
  type Node,
} from "../engine/graph/index.js";
import type { ParameterScope } from "../engine/nn/index.js";
import type { TrainedTokens } from "./adapters/adapter-parts.js";
import { loraAName, loraBiasName, loraBName, loraMagnitudeName, type LoraModule } from "./adapters/lora-module.js";
import { BLOCK_SIZE } from "./weights/quantize.js";
import {
  getHeadRows,
  getInt8Parts,
  getQuantizedParts,
  isInt8,
  type BlockParameter,
  type HeadParameter,
  type StoredParameter,
} from "./weights/stored-parameter.js";

/** Precision of gradients through frozen weights. */
export type BackwardPrecision = "float32" | "int8";

export interface ParameterScopeOptions {
  readonly parameters: ReadonlyMap<string, StoredParameter>;
  /** Whether weights are stored [in, out]. */
  readonly transposedWeights: boolean;
  readonly adapter: ReadonlyMap<string, LoraModule>;
  /** Rows of the embedding and the output matrix that are trained. */
  readonly trainedTokens?: readonly TrainedTokens[];
  /** Name of the output matrix. */
  readonly head: string;
  /**
   * "merged" computes W + s B A once for all tokens, which pays off for many tokens (see
   * chooseAdapterMode); "unmerged" computes W x + s B (A x), which keeps W constant so that ONNX
   * Runtime can pack it.
   */
  readonly adapterMode: "merged" | "unmerged";
  /**
   * "int8" rounds gradients through frozen weights to 8 bits; the forward pass and an adapter's
   * gradient given these do not change. Not applied to merged weights and those with a scale per
   * block.
   */
  readonly backwardPrecision?: BackwardPrecision;
  /**
   * Whether the graph computes a few tokens at a time, as decoding does: int8 modules of one input
   * are joined in one product, and logits computed with the output matrix's codes. Slower for many
   * tokens. Default false.
   */
  readonly forDecoding?: boolean;
  /**
   * Whether DoRA's factors are inputs of the graph, which `derivedValues` compute, instead of being
   * computed in each run. Default false.
   */
  readonly withDerivedInputs?: boolean;
  /** Dropout probability of the adapter's input; requires "unmerged". */
  readonly adapterDropout?: number;
}

/** Graph input: uniform dropout noise shared by all layers at different offsets. */
export const DROPOUT_NOISE = "dropout_noise";

/** Long enough that adjacent layers share little of it, short enough to draw at every step. */
export const DROPOUT_NOISE_LENGTH = 2 ** 18 + 3;

/** Distance between offsets; coprime to the noise length. */
const DROPOUT_STRIDE = 39_119;

/** A model's parameters as nodes: frozen ones are weights, trainable ones are inputs. */
export class ModelParameterScope implements ParameterScope {
  /** Trainable parameters used so far, by name. */
  readonly trainableInputs = new Map<string, Node>();
  /** Inputs of the graph that depend on the parameters alone, with what computes them. */
  readonly derivedValues = new Map<string, Node>();
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
      case "int8Head":
        return this.dequantizeHead(name, parameter);
      case "frozen":
        return cast(weight(name, parameter.dtype ?? "float32", parameter.shape), "float32");
      case "base":
        return input(baseValueName(parameter.of), "float32", parameter.shape);
      case "trainable":
        return this.getTrainableInput(name, parameter.shape);
      case "quantized":
        return this.dequantizeWeight(name, parameter);
      case "int8": {
        const { codes, scales } = getInt8Parts(name, parameter);
        const zero = parameter.codeType === "uint8" ? ZERO_CODE : 0;
        return transpose(mul(sub(cast(codes, "float32"), zero), scales), [1, 0]);
      }
    }
  }

  linear(module: string, x: Node): Node {
    const lora = this.options.adapter.get(module);
    const output =
      lora !== undefined && this.isMerged(lora)
        ? this.multiplyMerged(lora, x)
        : this.addAdapter(module, x, this.multiplyWeight(`${module}.weight`, x));
    return this.addBias(module, output);
  }

  linears(modules: readonly string[], x: Node): Node[] {
    const names = modules.map((module) => `${module}.weight`);
    const parameters = names.map((name) => this.options.parameters.get(name));
    if (this.options.forDecoding !== true || !parameters.every(isInt8))
      return modules.map((module) => this.linear(module, x));
    const parts = parameters.map((parameter, i) => getInt8Parts(names[i], parameter));
    const codes = parts.map((part) => part.codes);
    const scales = parts.map((part) => part.scales);
    const joined = this.multiplyInt8(x, { codes: concat(codes, 1), scales: concat(scales, 0) });
    const outFeatures = parameters.map(({ shape }) => shape[0]);
    const products = split(joined, 1, outFeatures);
    return modules.map((module, i) => this.addBias(module, this.addAdapter(module, x, products[i])));
  }

  multiplyHead(name: string, x: Node, tokens?: Node): Node {
    const multiply = (input: Node) =>
      tokens === undefined
        ? this.multiplyHeadWeight(name, input)
        : matmul(input, this.gatherStoredRows(name, tokens), { transposeB: true });
    const loras = [...this.options.adapter.values()].filter(({ kind, tiesHead }) => kind === "head" || tiesHead);
    const logits = loras.reduce((product, lora) => this.adaptProduct(lora, x, product, multiply, tokens), multiply(x));
    return (this.options.trainedTokens ?? [])
      .filter(({ inHead }) => inHead)
      .reduce((sum, trained) => add(sum, this.multiplyTrainedTokens(trained, x, tokens)), logits);
  }

  headWeight(name: string, tokens?: Node): { readonly head: Node; readonly scales?: Node } {
    if (tokens !== undefined) return { head: this.gatherStoredRows(name, tokens) };
    const parameter = this.options.parameters.get(name);
    if (parameter?.kind !== "int8Head") return { head: this.tensor(name) };
    const { codes, scales } = getHeadRows(name, parameter);
    return { head: codes, scales };
  }

  /** Returns rows [tokens, width] of a table [vocabulary, width] as stored. */
  private gatherStoredRows(name: string, tokens: Node): Node {
    const parameter = this.options.parameters.get(name);
    if (parameter?.kind !== "int8Head") return gatherRows(this.tensor(name), tokens);
    const { codes, scales } = getHeadRows(name, parameter);
    const rowScales = reshape(gatherRows(scales, tokens), [tokens.shape[0], 1]);
    return mul(cast(gatherRows(codes, tokens), "float32"), rowScales);
  }

  private multiplyHeadWeight(name: string, x: Node): Node {
    const parameter = this.options.parameters.get(name);
    if (this.options.forDecoding !== true || parameter?.kind !== "int8Head")
      return matmul(x, this.tensor(name), { transposeB: true });
    return this.multiplyInt8(x, getInt8Parts(name, parameter));
  }

  embed(name: string, tokens: Node, ignorePadding: (rows: Node) => Node): Node {
    const lookUp = (table: Node, rows = tokens) => ignorePadding(gatherRows(table, rows));
    const stored = ignorePadding(this.gatherStoredRows(name, tokens));
    const lora = [...this.options.adapter.values()].find(({ kind }) => kind === "embedding");
    const embedded = lora === undefined ? stored : this.adaptEmbedding(lora, stored, lookUp);
    return (this.options.trainedTokens ?? [])
      .filter(({ inEmbedding }) => inEmbedding)
      .reduce((sum, trained) => {
        const changes = this.getTokenChanges(trained.name, trained.tokens.length);
        const unchanged = constant(
          "float32",
          [1, changes.shape[1] as number],
          new Float32Array(changes.shape[1] as number),
        );
        const rowByToken = new Int32Array(this.options.parameters.get(name)!.shape[0]).fill(trained.tokens.length);
        trained.tokens.forEach((token, row) => (rowByToken[token] = row));
        const rows = gatherRows(constant("int32", [rowByToken.length], rowByToken), tokens);
        return add(sum, lookUp(concat([changes, unchanged], 0), rows));
      }, embedded);
  }

  private addBias(module: string, output: Node): Node {
    const bias = `${module}.bias`;
    return this.has(bias) ? add(output, this.tensor(bias)) : output;
  }

  /** Adds the product of a module's adapter, if it has one, to that of its weight. */
  private addAdapter(module: string, x: Node, product: Node): Node {
    const lora = this.options.adapter.get(module);
    if (lora === undefined) return product;
    return this.adaptProduct(lora, x, product, (input) => this.multiplyWeight(`${module}.weight`, input));
  }

  /**
   * Adds a module's adapter to its product with x, or to some columns of it. `multiply` returns the
   * product with other inputs.
   */
  private adaptProduct(lora: LoraModule, x: Node, product: Node, multiply: (x: Node) => Node, columns?: Node): Node {
    const dropped = this.applyAdapterDropout(x);
    const lowRank = this.multiplyLowRank(lora, dropped, columns);
    if (!lora.useDora) return add(product, lowRank);
    const factors = this.getMagnitudeFactors(lora);
    const scales = columns === undefined ? factors : gatherRows(factors, columns);
    if (dropped === x) return mul(add(product, lowRank), scales);
    // As in PEFT, dropout applies to all but the product of the base model.
    return add(product, add(mul(multiply(dropped), sub(scales, 1)), mul(lowRank, scales)));
  }

  private adaptEmbedding(lora: LoraModule, stored: Node, lookUp: (table: Node) => Node): Node {
    const { a, b } = this.getLoraFactors(lora);
    const lowRank = matmul(lookUp(transpose(a, [1, 0])), b, { transposeB: true, alpha: lora.scaling });
    const sum = add(stored, lowRank);
    return lora.useDora ? mul(sum, this.getMagnitudeFactors(lora)) : sum;
  }

  /** Returns DoRA's factors of the outputs: magnitudes divided by norms without a gradient. */
  private getMagnitudeFactors(lora: LoraModule): Node {
    const name = loraMagnitudeName(lora);
    const shape = [lora.outFeatures];
    const magnitudes = this.getTrainableInput(name, shape);
    const factors = div(magnitudes, stopGradient(this.computeNorms(lora, this.getLoraFactors(lora))));
    if (this.options.withDerivedInputs !== true) return factors;
    this.derivedValues.set(derivedName(name), factors);
    return input(derivedName(name), "float32", shape);
  }

  /**
   * Returns the norm of the weights of each output [out] of an adapted module, with the update of
   * given factors.
   */
  computeNorms({ kind, module, scaling }: LoraModule, factors?: { a: Node; b: Node }): Node {
    const name = kind === "head" ? this.options.head : `${module}.weight`;
    const stored = this.tensor(name);
    const storedKind = this.options.parameters.get(name)?.kind;
    const isOutIn = storedKind === "quantized" || storedKind === "int8" || !this.options.transposedWeights;
    const isInOut = kind === "embedding" || (kind === "linear" && !isOutIn);
    const sum =
      factors === undefined
        ? stored
        : isInOut
          ? addMatmul(stored, factors.a, factors.b, { transposeA: true, transposeB: true, alpha: scaling })
          : addMatmul(stored, factors.b, factors.a, { alpha: scaling });
    return sqrt(reduceSum(square(sum), [isInOut ? 0 : 1]));
  }

  /** Returns what training has added to rows of tokens. */
  private getTokenChanges(name: string, count: number): Node {
    const shape = [count, this.options.parameters.get(this.options.head)!.shape[1]];
    return sub(this.getTrainableInput(name, shape), input(baseValueName(name), "float32", shape));
  }

  private multiplyTrainedTokens({ name, tokens }: TrainedTokens, x: Node, columns?: Node): Node {
    const products = matmul(this.getTokenChanges(name, tokens.length), x, { transposeB: true });
    const vocabSize = this.options.parameters.get(this.options.head)!.shape[0];
    const all = scatterAddRows(products, tokenIndices(tokens), vocabSize);
    return transpose(columns === undefined ? all : gatherRows(all, columns), [1, 0]);
  }

  /** Multiplies x by a weight as stored. */
  private multiplyWeight(name: string, x: Node): Node {
    const parameter = this.options.parameters.get(name);
    const layout = { transposeB: !this.options.transposedWeights };
    const usesInt8Gradient = this.options.backwardPrecision === "int8";
    switch (parameter?.kind) {
      case "quantized": {
        const parts = getQuantizedParts(name, parameter);
        return quantizedMatmul(x, parts, { bits: parameter.bits, blockSize: BLOCK_SIZE });
      }
      case "int8":
        return this.multiplyInt8(x, getInt8Parts(name, parameter));
      default:
        return usesInt8Gradient && parameter?.kind === "frozen"
          ? int8GradientMatmul(x, this.tensor(name), layout)
          : matmul(x, this.tensor(name), layout);
    }
  }

  private multiplyInt8(x: Node, parts: Int8Weight): Node {
    const gradientBits = this.options.backwardPrecision === "int8" ? 8 : 16;
    return int8WeightMatmul(x, parts, { transposeB: false, bits: 16, gradientBits });
  }

  /** Returns the rounded values of an output matrix [vocabulary, width]. */
  private dequantizeHead(name: string, parameter: HeadParameter): Node {
    const { codes, scales } = getHeadRows(name, parameter);
    const [rows, columns] = parameter.shape;
    const zeros = constant("int8", [rows, 1], new Int8Array(rows));
    return dequantize(codes, reshape(scales, [rows, 1]), zeros, columns);
  }

  private dequantizeWeight(name: string, parameter: BlockParameter): Node {
    const { codes, scales, zeroPoints } = getQuantizedParts(name, parameter);
    return dequantize(codes, scales, zeroPoints, BLOCK_SIZE);
  }

  private getLoraFactors(lora: LoraModule): { a: Node; b: Node } {
    return {
      a: this.getTrainableInput(loraAName(lora), [lora.rank, lora.inFeatures]),
      b: this.getTrainableInput(loraBName(lora), [lora.outFeatures, lora.rank]),
    };
  }

  /** Computes scaling * B (A x), or some of its columns. */
  private multiplyLowRank(lora: LoraModule, x: Node, columns?: Node): Node {
    const { a, b } = this.getLoraFactors(lora);
    const select = (rows: Node) => (columns === undefined ? rows : gatherRows(rows, columns));
    // The output matrix has the transposed update of the embedding.
    if (lora.kind === "embedding")
      return matmul(matmul(x, b), select(transpose(a, [1, 0])), { transposeB: true, alpha: lora.scaling });
    const product = matmul(matmul(x, a, { transposeB: true }), select(b), { transposeB: true, alpha: lora.scaling });
    if (!lora.hasBias) return product;
    const bias = select(this.getTrainableInput(loraBiasName(lora), [lora.outFeatures]));
    return add(product, mul(bias, lora.scaling));
  }

  private isMerged({ module, useDora, hasBias }: LoraModule): boolean {
    // Merging would dequantize the weights as a whole.
    const kind = this.options.parameters.get(`${module}.weight`)?.kind;
    const isPlain = !useDora && !hasBias;
    return this.options.adapterMode === "merged" && isPlain && kind !== "quantized" && kind !== "int8";
  }

  private multiplyMerged(lora: LoraModule, x: Node): Node {
    const { module, scaling } = lora;
    const transposeB = !this.options.transposedWeights;
    const { a, b } = this.getLoraFactors(lora);
    const stored = this.tensor(`${module}.weight`);
    const merged = transposeB
      ? addMatmul(stored, b, a, { alpha: scaling })
      : addMatmul(stored, a, b, { transposeA: true, transposeB: true, alpha: scaling });
    // The product with the merged weight yields dx; the low-rank products, never run forward, yield
    // dA and dB.
    return withGradientOf(matmul(x, stopGradient(merged), { transposeB }), this.multiplyLowRank(lora, stopGradient(x)));
  }

  private applyAdapterDropout(x: Node): Node {
    return this.applyDropout(x, this.options.adapterDropout ?? 0);
  }

  /** Applies inverted dropout to x. */
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

/** Name of the graph input with the base model's values of a trained parameter. */
export const baseValueName = (name: string): string => `${name} of the base model`;

/** Name of the graph input with what is derived from a trained parameter. */
const derivedName = (name: string): string => `${name} divided by norms`;

const tokenIndices = (tokens: readonly number[]): Node => constant("int32", [tokens.length], Int32Array.from(tokens));
