import { addScaled, adamw, sgd, sumSquares, type AdamwStep, type SgdStep } from "../kernels/optimisers.js";
import {
  plainLogProb,
  sampleToken,
  tokenDistribution,
  type SamplingSettings,
  type TokenDistribution,
} from "../kernels/sampling.js";
import { elementCount } from "../tensor/tensor.js";
import type { View } from "./buffer.js";

/** How the next token of one row is drawn. */
export interface RowSampling {
  readonly settings: SamplingSettings;
  /** In [0, 1). */
  readonly uniform: number;
  /** Tokens that the repetition penalty counts as seen. */
  readonly seen: Int32Array;
  /** The only tokens that may be drawn, where the reply is constrained. */
  readonly allowed: Int32Array | undefined;
  /** Gives what the token was drawn from, too. */
  readonly keepsDistribution: boolean;
}

/** Work on buffers that is cheaper outside a graph; each runs in the worker, next to the buffers. */
export type KernelCall =
  /**
   * Copies blocks of elements within each of several sections that source and target are made of: plan holds source offset,
   * target offset and length in turn, the same for every section.
   */
  | {
      readonly name: "copyBlocks";
      readonly source: View;
      readonly target: View;
      readonly sections: number;
      /** Elements from one section's start to the next's. */
      readonly sourceStride: number;
      readonly targetStride: number;
      readonly plan: Int32Array;
    }
  | { readonly name: "fill"; readonly target: View; readonly value: number }
  /** target += scale * source */
  | { readonly name: "addScaled"; readonly target: View; readonly source: View; readonly scale: number }
  /** Gives the sum of squares; not finite when an element is not. */
  | { readonly name: "sumSquares"; readonly source: View }
  | ({
      readonly name: "adamw";
      readonly parameters: View;
      readonly gradients: View;
      readonly first: View;
      readonly second: View;
    } & AdamwStep)
  | ({
      readonly name: "sgd";
      readonly parameters: View;
      readonly gradients: View;
      readonly velocity: View | undefined;
    } & SgdStep)
  /** Draws a token for each row of logits, plain and tempered probabilities, each [rows, vocabulary]; gives values [rows] along. */
  | {
      readonly name: "sample";
      readonly logits: View;
      readonly plain: View;
      readonly tempered: View;
      readonly values?: View;
      readonly rows: readonly RowSampling[];
    }
  /** Log-probability of a token for each row of logits and plain probabilities, each [rows, vocabulary]. */
  | { readonly name: "pickLogProbs"; readonly logits: View; readonly plain: View; readonly tokens: Int32Array };

/** Tokens drawn, by row; logProbs under the distribution drawn from, plainLogProbs under the model's own at temperature 1. */
export interface SampleResult {
  readonly tokens: Int32Array;
  readonly logProbs: Float64Array;
  readonly plainLogProbs: Float64Array;
  /** Of the states before the tokens; undefined for a model without a value head. */
  readonly values: Float32Array | undefined;
  /** Of the rows that asked for it. */
  readonly distributions: (TokenDistribution | undefined)[];
}

export type KernelResult = number | SampleResult | Float64Array | undefined;

/** Throws when views have different sizes or a block lies outside of its view. */
export function runKernel(call: KernelCall, floats: (view: View) => Float32Array): KernelResult {
  switch (call.name) {
    case "copyBlocks":
      copyBlocks(floats(call.source), floats(call.target), call);
      return undefined;
    case "fill":
      floats(call.target).fill(call.value);
      return undefined;
    case "addScaled":
      sameSize(call.target, call.source);
      addScaled(floats(call.target), floats(call.source), call.scale);
      return undefined;
    case "sumSquares":
      return sumSquares(floats(call.source));
    case "adamw":
      sameSize(call.parameters, call.gradients, call.first, call.second);
      adamw(floats(call.parameters), floats(call.gradients), floats(call.first), floats(call.second), call);
      return undefined;
    case "sgd":
      sameSize(call.parameters, call.gradients, call.velocity ?? call.parameters);
      sgd(floats(call.parameters), floats(call.gradients), call.velocity && floats(call.velocity), call);
      return undefined;
    case "sample":
      return sample(call, floats);
    case "pickLogProbs": {
      const { logits, plain, tokens } = call;
      return Float64Array.from(tokens, (token, row) =>
        plainLogProb(rowOf(logits, row, floats), rowOf(plain, row, floats), token),
      );
    }
  }
}

function sameSize(first: View, ...others: readonly View[]): void {
  const size = elementCount(first.shape);
  const other = others.find(({ shape }) => elementCount(shape) !== size);
  if (other !== undefined) throw new Error(`a kernel was given ${size} and ${elementCount(other.shape)} elements`);
}

function copyBlocks(
  source: Float32Array,
  target: Float32Array,
  { sections, sourceStride, targetStride, plan }: Extract<KernelCall, { name: "copyBlocks" }>,
): void {
  for (let section = 0; section < sections; section++) {
    for (let i = 0; i < plan.length; i += 3) {
      const from = section * sourceStride + plan[i];
      const to = section * targetStride + plan[i + 1];
      const length = plan[i + 2];
      if (Math.min(from, to, length) < 0 || from + length > source.length || to + length > target.length)
        throw new Error(
          `a block of ${length} from ${from} of ${source.length} to ${to} of ${target.length} does not fit`,
        );
      // A loop beats a view of a view for the short blocks of a head's vector.
      if (length <= 128) for (let j = 0; j < length; j++) target[to + j] = source[from + j];
      else target.set(source.subarray(from, from + length), to);
    }
  }
}

/** One row of a matrix [rows, columns]. */
function rowOf(view: View, row: number, floats: (view: View) => Float32Array): Float32Array {
  const columns = view.shape[1];
  return floats({ ...view, shape: [columns], offset: view.offset + row * columns });
}

function sample(
  { logits, plain, tempered, values, rows }: Extract<KernelCall, { name: "sample" }>,
  floats: (view: View) => Float32Array,
): SampleResult {
  const row = (view: View, i: number) => rowOf(view, i, floats);
  const result: SampleResult = {
    tokens: new Int32Array(rows.length),
    logProbs: new Float64Array(rows.length),
    plainLogProbs: new Float64Array(rows.length),
    values: values && floats(values).slice(),
    distributions: [],
  };
  rows.forEach(({ settings, uniform, seen, allowed, keepsDistribution }, i) => {
    const scores = { logits: row(logits, i), tempered: row(tempered, i) };
    const { token, logProb } = sampleToken(scores, settings, seen, uniform, allowed);
    if (keepsDistribution && settings.temperature > 0) {
      const distribution = tokenDistribution(scores, settings, seen, allowed);
      result.distributions[i] = distribution instanceof Float32Array ? distribution.slice() : distribution;
    }
    result.tokens[i] = token;
    result.logProbs[i] = logProb;
    result.plainLogProbs[i] = plainLogProb(scores.logits, row(plain, i), token);
  });
  return result;
}
