import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { grpo } from "../algorithms/index.js";
import { TrainableModels } from "../../../test/support/trainable.js";
import { Agent } from "../agent/agent.js";
import { Env, type ResetOptions, type ResetResult, type StepResult } from "../../envs/env.js";
import { Discrete } from "../../envs/spaces/discrete.js";
import { Trainer } from "./trainer.js";

const SECRET = [4, 0, 7, 1];

/**
 * A secret of four digits, guessed digit by digit. Only after the last it is said how many were
 * right.
 */
class SecretEnv extends Env<number, number> {
  override readonly observationSpace = new Discrete(SECRET.length + 1);
  override readonly actionSpace = new Discrete(10);
  private guesses: number[] = [];

  /** `sign` -1 pays for what is wrong. */
  constructor(private readonly sign: 1 | -1) {
    super();
  }

  override reset({ seed }: ResetOptions = {}): ResetResult<number> {
    this.reseed(seed);
    this.guesses = [];
    return { observation: 0, info: {} };
  }

  override step(digit: number): StepResult<number> {
    this.guesses.push(digit);
    const terminated = this.guesses.length === SECRET.length;
    const right = this.guesses.filter((guess, i) => guess === SECRET[i]).length;
    const reward = terminated ? (this.sign * right) / SECRET.length : 0;
    return { observation: this.guesses.length, reward, terminated, truncated: false, info: {} };
  }
}

const DIGITS = Array.from({ length: 10 }, (_, digit) => String(digit));

class Guesser extends Agent<number, number> {
  override formatPrompt(place: number) {
    return ["first", "second", "third", "last"][place];
  }

  override getChoices() {
    return DIGITS;
  }

  override extractAction(response: string) {
    return Number(response);
  }
}

const models = new TrainableModels();
let folder: string;
beforeAll(async () => {
  ({ folder } = await models.open({ scale: 0.2 }));
});
afterAll(() => models.close());

/** Trains for 64 episodes an update; returns the mean return of the last episodes. */
async function train(sign: 1 | -1, updates: number): Promise<number> {
  const model = await models.reopen(folder, { r: 8, seed: 1, valueHead: undefined });
  const agent = new Guesser(model, undefined, {
    algorithm: grpo({
      batchSize: 64,
      numGenerations: 16,
      miniBatchSize: 64,
      learningRate: 0.005,
      entropyCoef: 0.05,
      gamma: 1,
    }),
    seed: 1,
  });
  const trainer = new Trainer({ agent, env: () => new SecretEnv(sign), numEnvs: 64, episodes: 64 * updates, seed: 1 });
  const { metrics } = await trainer.train();
  return metrics["rollout/ep_rew_mean"];
}

describe("a guessing game of four digits with a reward only at the end", () => {
  it("is solved by GRPO, and not with the sign flipped", async () => {
    expect(await train(1, 60)).toBeGreaterThan(0.9);
    expect(await train(-1, 30)).toBeGreaterThan(-0.05);
  }, 120_000);
});
