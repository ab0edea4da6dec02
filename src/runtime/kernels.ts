import type { WireView } from "./protocol.js";

/**
 * Work on buffers that is cheaper outside a graph: strided copies and one-pass updates over flat float32 vectors.
 * Each runs in the worker, next to the buffers.
 */
export type KernelCall =
  /** Copies blocks of `length` elements: plan holds source offset, target offset, length, triple by triple. */
  | { readonly name: "copyBlocks"; readonly source: WireView; readonly target: WireView; readonly plan: Int32Array }
  | { readonly name: "fill"; readonly target: WireView; readonly value: number }
  /** target += scale * source */
  | { readonly name: "addScaled"; readonly target: WireView; readonly source: WireView; readonly scale: number }
  /** Gives the sum of squares; not finite when an element is not. */
  | { readonly name: "sumSquares"; readonly source: WireView }
  | ({
      readonly name: "adamw";
      readonly parameters: WireView;
      readonly gradients: WireView;
      readonly first: WireView;
      readonly second: WireView;
    } & AdamwStep)
  | ({
      readonly name: "sgd";
      readonly parameters: WireView;
      readonly gradients: WireView;
      readonly velocity: WireView | undefined;
    } & SgdStep);

export interface AdamwStep {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  /** 1 for the first step. */
  readonly step: number;
  /** Factor on the gradient before anything else, for clipping and averaging. */
  readonly gradientScale: number;
}

export interface SgdStep {
  readonly learningRate: number;
  readonly momentum: number;
  readonly weightDecay: number;
  readonly gradientScale: number;
}

export function runKernel(call: KernelCall, floats: (view: WireView) => Float32Array): number | undefined {
  switch (call.name) {
    case "copyBlocks": {
      const source = floats(call.source);
      const target = floats(call.target);
      const { plan } = call;
      for (let i = 0; i < plan.length; i += 3) target.set(source.subarray(plan[i], plan[i] + plan[i + 2]), plan[i + 1]);
      return undefined;
    }
    case "fill":
      floats(call.target).fill(call.value);
      return undefined;
    case "addScaled": {
      const source = floats(call.source);
      const target = floats(call.target);
      for (let i = 0; i < target.length; i++) target[i] += call.scale * source[i];
      return undefined;
    }
    case "sumSquares": {
      const source = floats(call.source);
      let sum = 0;
      for (let i = 0; i < source.length; i++) sum += source[i] * source[i];
      return sum;
    }
    case "adamw":
      adamw(floats(call.parameters), floats(call.gradients), floats(call.first), floats(call.second), call);
      return undefined;
    case "sgd":
      sgd(floats(call.parameters), floats(call.gradients), call.velocity && floats(call.velocity), call);
      return undefined;
  }
}

/** Decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2), in PyTorch's order of operations. */
function adamw(
  parameters: Float32Array,
  gradients: Float32Array,
  first: Float32Array,
  second: Float32Array,
  step: AdamwStep,
): void {
  const { learningRate, beta1, beta2, epsilon, weightDecay, gradientScale } = step;
  const stepSize = learningRate / (1 - beta1 ** step.step);
  const correction = 1 / Math.sqrt(1 - beta2 ** step.step);
  const keep = 1 - learningRate * weightDecay;
  for (let i = 0; i < parameters.length; i++) {
    const g = gradients[i] * gradientScale;
    const m = beta1 * first[i] + (1 - beta1) * g;
    const v = beta2 * second[i] + (1 - beta2) * g * g;
    first[i] = m;
    second[i] = v;
    parameters[i] = parameters[i] * keep - (stepSize * m) / (Math.sqrt(v) * correction + epsilon);
  }
}

/** With momentum, the velocity is a running sum of gradients, as in PyTorch (dampening 0). */
function sgd(
  parameters: Float32Array,
  gradients: Float32Array,
  velocity: Float32Array | undefined,
  step: SgdStep,
): void {
  const { learningRate, momentum, weightDecay, gradientScale } = step;
  for (let i = 0; i < parameters.length; i++) {
    let update = gradients[i] * gradientScale + weightDecay * parameters[i];
    if (velocity !== undefined) {
      velocity[i] = momentum * velocity[i] + update;
      update = velocity[i];
    }
    parameters[i] -= learningRate * update;
  }
}
