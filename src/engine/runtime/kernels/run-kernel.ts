import { addScaled, adamw, sgd, sumSquares, type AdamwStep, type SgdStep } from "./optimizers.js";
import {
  mostProbable,
  rawLogProb,
  sampleToken,
  tokenDistribution,
  type SampledToken,
  type SamplingParams,
  type TokenDistribution,
  listTokens,
} from "./sampling.js";
import { countElements } from "../../../core/numbers.js";
import type { BufferView } from "../buffer-view.js";

/** Sampling request for one row. */
export interface SamplingRow {
  readonly sampling: SamplingParams;
  /** In [0, 1). */
  readonly uniform: number;
  /** Tokens subject to the repetition penalty. */
  readonly seenTokens: Int32Array;
  /** Tokens that may be drawn under a constraint; undefined for all. */
  readonly allowedTokens: Int32Array | undefined;
  /** Whether to return the distribution as well. */
  readonly returnsDistribution: boolean;
  /** Whether to return the tokens that the sampling parameters keep. */
  readonly returnsKeptTokens: boolean;
  /** Number of most probable tokens to return. */
  readonly topLogProbs: number;
}

/**
 * Operations on buffers that are cheaper outside a graph; they run in the worker, which owns the
 * buffers.
 */
export type CpuKernelCall =
  /**
   * Copies blocks of elements within each of several sections of source and target. `plan` holds
   * triples of source offset, target offset and length, applied to every section.
   */
  | {
      readonly name: "copyBlocks";
      readonly source: BufferView;
      readonly target: BufferView;
      readonly sections: number;
      /** Elements between the starts of consecutive sections. */
      readonly sourceStride: number;
      readonly targetStride: number;
      readonly plan: Int32Array;
    }
  | { readonly name: "fill"; readonly target: BufferView; readonly value: number }
  /** target += scale * source */
  | { readonly name: "addScaled"; readonly target: BufferView; readonly source: BufferView; readonly scale: number }
  /** Returns the sum of squares; not finite when an element is not. */
  | { readonly name: "sumSquares"; readonly source: BufferView }
  | ({
      readonly name: "adamw";
      readonly parameters: BufferView;
      readonly gradients: BufferView;
      readonly firstMoment: BufferView;
      readonly secondMoment: BufferView;
    } & AdamwStep)
  | ({
      readonly name: "sgd";
      readonly parameters: BufferView;
      readonly gradients: BufferView;
      readonly velocity: BufferView | undefined;
    } & SgdStep)
  /**
   * Samples a token per row from logits, raw and tempered probabilities, each [rows, vocabulary];
   * passes values [rows] through. With `columns`, logits belong to some tokens [rows, columns], in
   * which all rows' `allowedTokens` are; raw log-probabilities are then NaN.
   */
  | {
      readonly name: "sample";
      readonly logits: BufferView;
      readonly rawProbabilities?: BufferView;
      readonly probabilities?: BufferView;
      readonly columns?: readonly number[];
      readonly values?: BufferView;
      readonly rows: readonly SamplingRow[];
    }
  /**
   * Returns the log-probability of one token per row of logits and raw probabilities, each [rows,
   * vocabulary].
   */
  | {
      readonly name: "gatherLogProbs";
      readonly logits: BufferView;
      readonly rawProbabilities: BufferView;
      readonly tokens: Int32Array;
      /** Number of most probable tokens to return for each row. */
      readonly topLogProbs: readonly number[];
    };

/**
 * Sampled tokens by row. `logProbs` are under the distribution sampled from, `rawLogProbs` under
 * the model's at temperature 1.
 */
export interface SampleResult {
  readonly tokens: Int32Array;
  readonly logProbs: Float64Array;
  readonly rawLogProbs: Float64Array;
  /** Values of the states before the tokens; undefined without a value head. */
  readonly values: Float32Array | undefined;
  /** Distributions of the rows that requested them. */
  readonly distributions: (TokenDistribution | undefined)[];
  /** Kept tokens of the rows that requested them, in ascending order. */
  readonly keptTokens: (Int32Array | undefined)[];
  /** Most probable tokens of the rows that requested them, at temperature 1. */
  readonly topLogProbs: SampledToken[][];
}

/** Scores by row. */
export interface ScoreResult {
  readonly logProbs: Float64Array;
  /** Most probable tokens of the rows that requested them. */
  readonly topLogProbs: SampledToken[][];
}

export type KernelResult = number | SampleResult | ScoreResult | undefined;

/** Runs a kernel. @throws Error when views differ in size or a block exceeds its view. */
export function runKernel(call: CpuKernelCall, floats: (view: BufferView) => Float32Array): KernelResult {
  switch (call.name) {
    case "copyBlocks":
      copyBlocks(floats(call.source), floats(call.target), call);
      return undefined;
    case "fill":
      floats(call.target).fill(call.value);
      return undefined;
    case "addScaled":
      checkSameSize(call.target, call.source);
      addScaled(floats(call.target), floats(call.source), call.scale);
      return undefined;
    case "sumSquares":
      return sumSquares(floats(call.source));
    case "adamw":
      checkSameSize(call.parameters, call.gradients, call.firstMoment, call.secondMoment);
      adamw(floats(call.parameters), floats(call.gradients), floats(call.firstMoment), floats(call.secondMoment), call);
      return undefined;
    case "sgd":
      checkSameSize(call.parameters, call.gradients, call.velocity ?? call.parameters);
      sgd(floats(call.parameters), floats(call.gradients), call.velocity && floats(call.velocity), call);
      return undefined;
    case "sample":
      return sample(call, floats);
    case "gatherLogProbs":
      return gatherLogProbs(call, floats);
  }
}

function gatherLogProbs(
  { logits, rawProbabilities, tokens, topLogProbs: counts }: Extract<CpuKernelCall, { name: "gatherLogProbs" }>,
  floats: (view: BufferView) => Float32Array,
): ScoreResult {
  const topLogProbs: SampledToken[][] = [];
  const logProbs = Float64Array.from(tokens, (token, i) => {
    const [scores, raw] = [rowView(logits, i, floats), rowView(rawProbabilities, i, floats)];
    if (counts[i] > 0) topLogProbs[i] = mostProbable(scores, raw, counts[i]);
    return rawLogProb(scores, raw, token);
  });
  return { logProbs, topLogProbs };
}

/** @throws Error when views differ in size. */
export function checkSameSize(first: BufferView, ...others: readonly BufferView[]): void {
  const size = countElements(first.shape);
  const other = others.find(({ shape }) => countElements(shape) !== size);
  if (other !== undefined) throw new Error(`kernel operands have ${size} and ${countElements(other.shape)} elements`);
}

/** @throws Error when a block exceeds its source or target. */
export function checkBlock(
  [from, to, length]: readonly [from: number, to: number, length: number],
  sourceSize: number,
  targetSize: number,
): void {
  if (Math.min(from, to, length) < 0 || from + length > sourceSize || to + length > targetSize)
    throw new Error(
      `block of ${length} elements from ${from} of ${sourceSize} to ${to} of ${targetSize} is out of bounds`,
    );
}

function copyBlocks(
  source: Float32Array,
  target: Float32Array,
  { sections, sourceStride, targetStride, plan }: Extract<CpuKernelCall, { name: "copyBlocks" }>,
): void {
  for (let section = 0; section < sections; section++) {
    for (let i = 0; i < plan.length; i += 3) {
      const from = section * sourceStride + plan[i];
      const to = section * targetStride + plan[i + 1];
      const length = plan[i + 2];
      checkBlock([from, to, length], source.length, target.length);
      // For the short blocks of a head's vector a loop is faster than a subarray.
      if (length <= 128) for (let j = 0; j < length; j++) target[to + j] = source[from + j];
      else target.set(source.subarray(from, from + length), to);
    }
  }
}

/** Returns one row of a matrix [rows, columns]. */
function rowView(view: BufferView, row: number, floats: (view: BufferView) => Float32Array): Float32Array {
  const columns = view.shape[1];
  return floats({ ...view, shape: [columns], offset: view.offset + row * columns });
}

function sample(
  { logits, rawProbabilities, probabilities, columns, values, rows }: Extract<CpuKernelCall, { name: "sample" }>,
  floats: (view: BufferView) => Float32Array,
): SampleResult {
  const row = (view: BufferView, i: number) => rowView(view, i, floats);
  // Tokens outside of the columns are not read.
  const scattered = new Float32Array(Math.max(0, ...(columns ?? [])) + 1);
  const result: SampleResult = {
    tokens: new Int32Array(rows.length),
    logProbs: new Float64Array(rows.length),
    rawLogProbs: new Float64Array(rows.length),
    values: values && floats(values).slice(),
    distributions: [],
    keptTokens: [],
    topLogProbs: [],
  };
  rows.forEach(
    ({ sampling, uniform, seenTokens, allowedTokens, returnsDistribution, returnsKeptTokens, topLogProbs }, i) => {
      const given = row(logits, i);
      columns?.forEach((token, column) => (scattered[token] = given[column]));
      const logitsByToken = columns === undefined ? given : scattered;
      const rowLogits = { logits: logitsByToken, probabilities: probabilities ? row(probabilities, i) : logitsByToken };
      const { token, logProb } = sampleToken(rowLogits, sampling, seenTokens, uniform, allowedTokens);
      if ((returnsDistribution || returnsKeptTokens) && sampling.temperature > 0) {
        const distribution = tokenDistribution(rowLogits, sampling, seenTokens, allowedTokens);
        if (returnsDistribution)
          result.distributions[i] = distribution instanceof Float32Array ? distribution.slice() : distribution;
        if (returnsKeptTokens) result.keptTokens[i] = listTokens(distribution);
      }
      result.tokens[i] = token;
      result.logProbs[i] = logProb;
      const raw = rawProbabilities && row(rawProbabilities, i);
      result.rawLogProbs[i] = raw === undefined ? NaN : rawLogProb(rowLogits.logits, raw, token);
      if (raw !== undefined && topLogProbs > 0)
        result.topLogProbs[i] = mostProbable(rowLogits.logits, raw, topLogProbs);
    },
  );
  return result;
}
