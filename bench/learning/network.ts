import type { RandomStream } from "../../src/core/random/random-stream.js";

const BETA1 = 0.9;
const BETA2 = 0.999;
const EPSILON = 1e-5;

/** A matrix of parameters with its gradient and the moments of Adam. */
class Parameters {
  readonly values: Float64Array;
  readonly gradients: Float64Array;
  private readonly first: Float64Array;
  private readonly second: Float64Array;
  private steps = 0;

  constructor(size: number, scale: number, random: RandomStream) {
    this.values = Float64Array.from({ length: size }, () => (scale === 0 ? 0 : random.normal(0, scale)));
    this.gradients = new Float64Array(size);
    this.first = new Float64Array(size);
    this.second = new Float64Array(size);
  }

  step(learningRate: number): void {
    this.steps++;
    const correction1 = 1 - BETA1 ** this.steps;
    const correction2 = 1 - BETA2 ** this.steps;
    for (let i = 0; i < this.values.length; i++) {
      const gradient = this.gradients[i];
      this.first[i] = BETA1 * this.first[i] + (1 - BETA1) * gradient;
      this.second[i] = BETA2 * this.second[i] + (1 - BETA2) * gradient ** 2;
      this.values[i] -=
        (learningRate * (this.first[i] / correction1)) / (Math.sqrt(this.second[i] / correction2) + EPSILON);
      this.gradients[i] = 0;
    }
  }
}

/** Outputs of a state, and what the backward pass needs. */
export interface Outputs {
  readonly logits: Float64Array;
  readonly value: number;
  readonly hidden: Float64Array | undefined;
}

/**
 * Logits and a value of states that are numbered: a table (no hidden layer), or a network with one
 * hidden layer of tanh units on one-hot states.
 */
export class StateNetwork {
  private readonly table: Parameters | undefined;
  private readonly input: Parameters | undefined;
  private readonly output: Parameters | undefined;
  private readonly width: number;

  constructor(
    states: number,
    private readonly actions: number,
    private readonly hiddenSize: number,
    random: RandomStream,
  ) {
    this.width = actions + 1;
    if (hiddenSize === 0) this.table = new Parameters(states * this.width, 0, random);
    else {
      this.input = new Parameters(states * hiddenSize, 1, random);
      this.output = new Parameters(hiddenSize * this.width, 0.1 / Math.sqrt(hiddenSize), random);
    }
  }

  forward(state: number): Outputs {
    const { width, actions, hiddenSize } = this;
    if (this.table !== undefined) {
      const row = this.table.values.subarray(state * width, (state + 1) * width);
      return { logits: row.slice(0, actions), value: row[actions], hidden: undefined };
    }
    const hidden = this.input!.values.slice(state * hiddenSize, (state + 1) * hiddenSize).map(Math.tanh);
    const outputs = new Float64Array(width);
    for (let i = 0; i < hiddenSize; i++)
      for (let k = 0; k < width; k++) outputs[k] += hidden[i] * this.output!.values[i * width + k];
    return { logits: outputs.slice(0, actions), value: outputs[actions], hidden };
  }

  /** Adds the gradients of a state's logits and value. */
  backward(state: number, { hidden }: Outputs, logits: Float64Array, value: number): void {
    const { width, actions, hiddenSize } = this;
    const gradient = (k: number) => (k === actions ? value : logits[k]);
    if (this.table !== undefined || hidden === undefined) {
      for (let k = 0; k < width; k++) this.table!.gradients[state * width + k] += gradient(k);
      return;
    }
    for (let i = 0; i < hiddenSize; i++) {
      let sum = 0;
      for (let k = 0; k < width; k++) {
        sum += gradient(k) * this.output!.values[i * width + k];
        this.output!.gradients[i * width + k] += gradient(k) * hidden[i];
      }
      this.input!.gradients[state * hiddenSize + i] += sum * (1 - hidden[i] ** 2);
    }
  }

  step(learningRate: number): void {
    for (const parameters of [this.table, this.input, this.output]) parameters?.step(learningRate);
  }
}
