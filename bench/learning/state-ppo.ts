import { RandomStream } from "../../src/core/random/random-stream.js";
import { sampleIndex } from "../../src/core/random/sample-index.js";
import { make } from "../../src/envs.js";
import { generalizedAdvantages } from "../../src/rl/algorithms/shared/gae.js";
import { whiten } from "../../src/rl/algorithms/shared/statistics.js";
import { listActions } from "../../test/learning-worlds/world-env.js";
import type { World } from "../../test/learning-worlds/world.js";
import { StateNetwork } from "./network.js";

export interface StatePpoOptions {
  readonly turns: number;
  readonly batchSize: number;
  readonly numEnvs: number;
  /** 0 is a table. */
  readonly hiddenSize: number;
  readonly learningRate: number;
  readonly seed: number;
}

/** Mean return of the episodes that ended by a number of turns. */
export interface CurvePoint {
  readonly turns: number;
  readonly meanReturn: number;
}

const EPOCHS = 4;
const MINI_BATCH_SIZE = 64;
const CLIP_RANGE = 0.2;
const VALUE_COEF = 0.5;
const ENTROPY_COEF = 0.01;
const LAMBDA = 0.95;
const WINDOW = 100;

interface Step {
  readonly state: number;
  readonly allowed: readonly number[];
  readonly action: number;
  readonly logProb: number;
  readonly value: number;
  reward: number;
  advantage: number;
  target: number;
}

/**
 * Runs PPO with the settings of CleanRL on the observations as states that are told apart by their
 * text: what a task costs an agent that need not read.
 */
export async function runStatePpo(world: World, options: StatePpoOptions): Promise<readonly CurvePoint[]> {
  const { turns, batchSize, numEnvs, hiddenSize, learningRate, seed } = options;
  const random = new RandomStream(seed);
  const names = listActions(world);
  const numbers = new Map<string, number>();
  const maxStates = 512;
  const network = new StateNetwork(maxStates, names.length, hiddenSize, random);
  const envs = Array.from({ length: numEnvs }, () => make(world.id));
  const slots = await Promise.all(
    envs.map(async (env, i) => ({ env, ...(await env.reset({ seed: seed * 1000 + i })), sum: 0 })),
  );
  const toState = (text: unknown): number => {
    const key = String(text);
    const number = numbers.get(key) ?? numbers.size % maxStates;
    numbers.set(key, number);
    return number;
  };
  const returns: number[] = [];
  const curve: CurvePoint[] = [];
  for (let done = 0; done < turns; done += batchSize) {
    const sequences: { steps: Step[]; bootstrap: number }[] = [];
    const running = slots.map((): Step[] => []);
    for (let taken = 0; taken < batchSize; taken += numEnvs)
      for (const [i, slot] of slots.entries()) {
        const state = toState(slot.observation);
        const offered = slot.info.actions as readonly string[];
        const allowed = offered.map((name) => names.indexOf(name));
        const { logits, value } = network.forward(state);
        const probabilities = [...softmax(logits, allowed)];
        const index = sampleIndex(probabilities, random.random());
        const name = offered[index];
        const action = slot.env.text!.parseAction(name, slot.observation, slot.info);
        const result = await slot.env.step(action);
        const step = { state, allowed, action: index, logProb: Math.log(probabilities[index]), value };
        running[i].push({ ...step, reward: result.reward, advantage: 0, target: 0 });
        slot.sum += result.reward;
        slot.observation = result.observation;
        slot.info = result.info;
        if (!result.terminated && !result.truncated) continue;
        const bootstrap = result.terminated ? 0 : network.forward(toState(result.observation)).value;
        sequences.push({ steps: running[i], bootstrap });
        running[i] = [];
        returns.push(slot.sum);
        Object.assign(slot, await slot.env.reset(), { sum: 0 });
      }
    running.forEach((steps, i) => {
      if (steps.length > 0) sequences.push({ steps, bootstrap: network.forward(toState(slots[i].observation)).value });
    });
    learn(network, sequences, learningRate * (1 - done / turns), random);
    const recent = returns.slice(-WINDOW);
    curve.push({ turns: done + batchSize, meanReturn: recent.reduce((sum, each) => sum + each, 0) / recent.length });
  }
  return curve;
}

function learn(
  network: StateNetwork,
  sequences: readonly { readonly steps: readonly Step[]; readonly bootstrap: number }[],
  learningRate: number,
  random: RandomStream,
): void {
  const scale = Math.max(1e-8, ...sequences.flatMap(({ steps }) => steps.map(({ reward }) => Math.abs(reward))));
  for (const { steps, bootstrap } of sequences) {
    const rewards = steps.map(({ reward }) => reward / scale);
    const ends = steps.map((_, i) => (i === steps.length - 1 ? bootstrap : 0));
    const values = steps.map(({ value }) => value);
    const { advantages, returns } = generalizedAdvantages(
      { rewards, values, bootstrap: ends },
      { gamma: 1, lam: LAMBDA },
    );
    steps.forEach((step, i) => Object.assign(step, { advantage: advantages[i], target: returns[i] }));
  }
  const all = sequences.flatMap(({ steps }) => steps);
  const advantages = whiten(all.map(({ advantage }) => advantage));
  const order = all.map((_, i) => i);
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    random.shuffle(order);
    for (let start = 0; start < order.length; start += MINI_BATCH_SIZE) {
      const batch = order.slice(start, start + MINI_BATCH_SIZE);
      for (const i of batch) addGradients(network, all[i], advantages[i], 1 / batch.length);
      network.step(learningRate);
    }
  }
}

function addGradients(network: StateNetwork, step: Step, advantage: number, weight: number): void {
  const outputs = network.forward(step.state);
  const probabilities = softmax(outputs.logits, step.allowed);
  const ratio = Math.exp(Math.log(probabilities[step.action]) - step.logProb);
  const isClipped = advantage > 0 ? ratio > 1 + CLIP_RANGE : ratio < 1 - CLIP_RANGE;
  const entropy = -probabilities.reduce((sum, p) => sum + (p > 0 ? p * Math.log(p) : 0), 0);
  const logits = new Float64Array(outputs.logits.length);
  step.allowed.forEach((action, i) => {
    const p = probabilities[i];
    const policy = isClipped ? 0 : -advantage * ratio * ((i === step.action ? 1 : 0) - p);
    const bonus = p > 0 ? ENTROPY_COEF * p * (Math.log(p) + entropy) : 0;
    logits[action] = weight * (policy + bonus);
  });
  network.backward(step.state, outputs, logits, weight * VALUE_COEF * (outputs.value - step.target));
}

function softmax(logits: Float64Array, allowed: readonly number[]): Float64Array {
  const max = Math.max(...allowed.map((action) => logits[action]));
  const weights = Float64Array.from(allowed, (action) => Math.exp(logits[action] - max));
  const sum = weights.reduce((total, each) => total + each, 0);
  return weights.map((each) => each / sum);
}
