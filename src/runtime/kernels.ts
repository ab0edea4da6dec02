import { addScaled, adamw, sgd, sumSquares, type AdamwStep, type SgdStep } from "../kernels/optimisers.js";
import { sampleToken, type SamplingSettings } from "../kernels/sampling.js";
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
  /** Draws a token for each row of logits, plain and tempered probabilities, each [rows, vocabulary]. */
  | {
      readonly name: "sample";
      readonly logits: View;
      readonly plain: View;
      readonly tempered: View;
      readonly rows: readonly RowSampling[];
    }
  /** log of plain[row, token] for each row. */
  | { readonly name: "pickLogProbs"; readonly plain: View; readonly tokens: Int32Array };

/** Tokens drawn, by row; logProbs under the distribution drawn from, plainLogProbs under the model's own at temperature 1. */
export interface SampleResult {
  readonly tokens: Int32Array;
  readonly logProbs: Float64Array;
  readonly plainLogProbs: Float64Array;
}

export type KernelResult = number | SampleResult | Float64Array | undefined;

export function runKernel(call: KernelCall, floats: (view: View) => Float32Array): KernelResult {
  switch (call.name) {
    case "copyBlocks":
      copyBlocks(floats(call.source), floats(call.target), call);
      return undefined;
    case "fill":
      floats(call.target).fill(call.value);
      return undefined;
    case "addScaled":
      addScaled(floats(call.target), floats(call.source), call.scale);
      return undefined;
    case "sumSquares":
      return sumSquares(floats(call.source));
    case "adamw":
      adamw(floats(call.parameters), floats(call.gradients), floats(call.first), floats(call.second), call);
      return undefined;
    case "sgd":
      sgd(floats(call.parameters), floats(call.gradients), call.velocity && floats(call.velocity), call);
      return undefined;
    case "sample":
      return sample(call, floats);
    case "pickLogProbs": {
      const vocabulary = call.plain.shape[1];
      const plain = floats(call.plain);
      return Float64Array.from(call.tokens, (token, row) => Math.log(plain[row * vocabulary + token]));
    }
  }
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
      // A loop beats a view of a view for the short blocks of a head's vector.
      if (length <= 128) for (let j = 0; j < length; j++) target[to + j] = source[from + j];
      else target.set(source.subarray(from, from + length), to);
    }
  }
}

function sample(
  { logits, plain, tempered, rows }: Extract<KernelCall, { name: "sample" }>,
  floats: (view: View) => Float32Array,
): SampleResult {
  const vocabulary = logits.shape[1];
  const row = (view: View, i: number) => floats({ ...view, shape: [vocabulary], offset: view.offset + i * vocabulary });
  const result: SampleResult = {
    tokens: new Int32Array(rows.length),
    logProbs: new Float64Array(rows.length),
    plainLogProbs: new Float64Array(rows.length),
  };
  rows.forEach(({ settings, uniform, seen, allowed }, i) => {
    const scores = { logits: row(logits, i), tempered: row(tempered, i) };
    const { token, logProb } = sampleToken(scores, settings, seen, uniform, allowed);
    result.tokens[i] = token;
    result.logProbs[i] = logProb;
    result.plainLogProbs[i] = Math.log(row(plain, i)[token]);
  });
  return result;
}
