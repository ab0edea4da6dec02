/**
 * One-pass updates of flat float32 vectors: cheaper than as a graph, which reads memory once per
 * operation.
 */

export interface AdamwStep {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  /** Counts from 1. */
  readonly step: number;
  /** Factor applied to the gradient first, for clipping and averaging. */
  readonly gradientScale: number;
}

export interface SgdStep {
  readonly learningRate: number;
  readonly momentum: number;
  readonly weightDecay: number;
  readonly gradientScale: number;
}

/** AdamW (Loshchilov and Hutter 2019, algorithm 2) in PyTorch's order of operations, in place. */
export function adamw(
  parameters: Float32Array,
  gradients: Float32Array,
  firstMoment: Float32Array,
  secondMoment: Float32Array,
  { learningRate, beta1, beta2, epsilon, weightDecay, step, gradientScale }: AdamwStep,
): void {
  const stepSize = learningRate / (1 - beta1 ** step);
  const correction = 1 / Math.sqrt(1 - beta2 ** step);
  const decayFactor = 1 - learningRate * weightDecay;
  for (let i = 0; i < parameters.length; i++) {
    const g = gradients[i] * gradientScale;
    const m = beta1 * firstMoment[i] + (1 - beta1) * g;
    const v = beta2 * secondMoment[i] + (1 - beta2) * g * g;
    firstMoment[i] = m;
    secondMoment[i] = v;
    parameters[i] = parameters[i] * decayFactor - (stepSize * m) / (Math.sqrt(v) * correction + epsilon);
  }
}

/** SGD with optional momentum as in PyTorch (dampening 0), in place. */
export function sgd(
  parameters: Float32Array,
  gradients: Float32Array,
  velocity: Float32Array | undefined,
  { learningRate, momentum, weightDecay, gradientScale }: SgdStep,
): void {
  for (let i = 0; i < parameters.length; i++) {
    let update = gradients[i] * gradientScale + weightDecay * parameters[i];
    if (velocity !== undefined) {
      velocity[i] = momentum * velocity[i] + update;
      update = velocity[i];
    }
    parameters[i] -= learningRate * update;
  }
}

/** target += scale * source */
export function addScaled(target: Float32Array, source: Float32Array, scale: number): void {
  for (let i = 0; i < target.length; i++) target[i] += scale * source[i];
}

/** Returns the sum of squares; not finite when an element is not. */
export function sumSquares(source: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < source.length; i++) sum += source[i] * source[i];
  return sum;
}
