import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RandomStream } from "../../core/random/random-stream.js";
import { integer, number } from "../../core/settings.js";
import { mul, neg, reduceSum, sub } from "../../engine/graph/index.js";
import { AutoModelForCausalLM, getPeftModel, type LanguageModel } from "../../generation/index.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import type { AlgorithmDefinition, ScoredTrajectory } from "./algorithm-definition.js";
import { checkDefinition, checkState } from "./check-definition.js";
import { defineAlgorithm } from "./define-algorithm.js";
import type { LossNodes } from "./shared/loss-nodes.js";

const settings = {
  batchSize: integer({ default: 8, min: 1, description: "Turns per update." }),
  learningRate: number({ default: 1e-3, above: 0, description: "Learning rate." }),
};

const rewards = (trajectories: readonly ScoredTrajectory[]) =>
  trajectories.map(({ turns }) => turns.map(({ turn, oldLogProbs }) => oldLogProbs.map(() => turn.reward)));

const policyLoss = ({ logProbs, perToken, weights }: LossNodes) =>
  neg(reduceSum(mul(weights, mul(logProbs, perToken("advantages")))));

const parts = {
  name: "mine",
  settings,
  rollout: () => ({ kind: "turns", turns: 2 }) as const,
  advantages: (trajectories: readonly ScoredTrajectory[]) => ({ advantages: rewards(trajectories) }),
  loss: (nodes: LossNodes) => ({ loss: policyLoss(nodes) }),
};

/** A definition as JavaScript may write it. */
type Untyped = AlgorithmDefinition<typeof settings, object, { learningRate: number }, undefined>;
const define = (other: object) => defineAlgorithm({ ...parts, ...other } as Untyped);

describe("a definition", () => {
  it.each<[string, object, RegExp]>([
    ["an unknown field", { advantage: parts.advantages }, /field "advantage", which nothing reads\. Did you mean adv/],
    ["no name", { name: undefined }, /The algorithm needs `name`: a non-empty string, got undefined/],
    ["a name with a space", { name: "my own" }, /its name must be a letter/],
    ["no rollout", { rollout: undefined }, /The algorithm mine needs `rollout`: a function, got undefined/],
    ["a loss that is none", { loss: 3 }, /mine needs `loss`: a function, got 3/],
    ["a list of settings", { settings: [] }, /mine needs `settings`: an object, got \[\]/],
    [
      "a bare value as setting",
      { settings: { ...settings, gamma: 0.9 } },
      /gamma must be declared as settings\.number/,
    ],
    [
      "a setting without a description",
      { settings: { ...settings, gamma: { type: "number", default: 1 } } },
      /its setting gamma needs a description/,
    ],
    [
      "a name in snake_case",
      { settings: { ...settings, batch_size: settings.batchSize } },
      /"batch_size" must be in camelCase/,
    ],
    [
      "a default out of range",
      { settings: { ...settings, epochs: integer({ default: 0.5, description: "Epochs." }) } },
      /default of its setting epochs must be an integer, got 0\.5/,
    ],
    ["another klSetting", { klSetting: "beta" }, /`klSetting` must be one of its settings, got "beta"/],
    ["another field of state", { state: { create: () => 1 } }, /`state` has a field "create"/],
    [
      "another field of stepping",
      { stepping: { epoch: () => 1 } },
      /"epoch", which nothing reads. Did you mean epochs/,
    ],
  ])("is refused with %s", (_, other, message) => {
    expect(() => define(other)).toThrow(message);
  });

  it("may have its own update, and then nothing of the shared one", () => {
    const create = () => Promise.reject(new Error("not called"));
    expect(() => checkDefinition({ name: "own", settings, create })).not.toThrow();
    expect(() => checkDefinition({ name: "own", settings, create, loss: parts.loss })).toThrow(/field "loss"/);
  });

  it.each<[string, object | undefined, RegExp]>([
    ["another kind", { kind: "episodes", episodes: 8 }, /must return \{ kind: "turns", turns \} or/],
    ["no turns", { kind: "turns", turns: 0 }, /an integer >= 1 as `turns`, got 0/],
    ["a setting that it lacks", { kind: "turns", turns: undefined }, /as `turns`, got undefined\. Settings have/],
    ["groups of unknown size", { kind: "groups", groups: 2 }, /as `groupSize`, got undefined/],
    ["nothing", undefined, /`rollout` must return/],
  ])("is refused when its rollout is %s", (_, request, message) => {
    expect(() => define({ rollout: () => request })().rollout()).toThrow(message);
  });

  it.each<[string, unknown, RegExp]>([
    ["a function", { f: () => 1 }, /mine cannot be saved: its state\.f is a function, which JSON/],
    ["NaN", { means: [1, NaN] }, /its state\.means\[1\] is NaN/],
    ["a map", new Map(), /its state is a Map/],
    ["a hole", [undefined], /its state\[0\] is undefined/],
  ])("is refused with %s in its state", (_, state, message) => {
    expect(() => checkState("mine", state)).toThrow(message);
    expect(() => checkState("mine", { step: 1, names: ["a", null], off: undefined })).not.toThrow();
  });
});

describe("what the functions of an algorithm return", () => {
  let model: LanguageModel;
  beforeAll(async () => {
    model = await getPeftModel(await AutoModelForCausalLM.fromPretrained("embedded", { threads: 1 }), { r: 2 });
  });
  afterAll(() => model.close());

  const turn: Turn = {
    prompt: [1, 2, 3],
    tokens: [4, 5],
    allowedTokens: undefined,
    logProbs: [-1, -1],
    text: "",
    finishReason: "stop",
    isValid: true,
    attempts: 1,
    penalty: 0,
    reward: 1,
  };
  const trajectories: readonly Trajectory[] = [
    { turns: [turn, turn], group: 0, end: "terminated", bootstrapPrompt: undefined },
    { turns: [turn], group: 1, end: "terminated", bootstrapPrompt: undefined },
  ];

  async function update(other: object, sampled = trajectories): Promise<Readonly<Record<string, number>>> {
    const learner = await define(other)().create(model, {
      temperature: 1,
      isTruncatedSampling: false,
      microBatchTokens: 512,
      random: new RandomStream(1),
    });
    try {
      return await learner.update(await learner.prepare(sampled));
    } finally {
      await learner.release();
    }
  }

  it("is trained with where it is as documented", async () => {
    const metrics = await update({ metrics: () => ({ mine: 2 }) });
    expect(metrics).toMatchObject({ mine: 2, num_optimizer_steps: 1 });
  });

  const advantages = (values: unknown) => ({ advantages: () => ({ advantages: values }) });
  it.each<[string, object, RegExp]>([
    [
      "advantages without a result",
      { advantages: () => {} },
      /`advantages` must return \{ advantages \}.*got undefined/,
    ],
    ["advantages with another name", { advantages: () => ({ advantage: [] }) }, /returned "advantage", which nothing/],
    ["advantages of one trajectory", advantages([[[1, 1]]]), /one entry for each of the 2 trajectories/],
    [
      "an advantage per trajectory",
      advantages([1, 1]),
      /`advantages`\[0\] must be an array with one entry for each of its 2/,
    ],
    [
      "an advantage per turn",
      advantages([[1, 1], [1]]),
      /`advantages`\[0\]\[0\] must be an array with one number for each of/,
    ],
    [
      "too many advantages",
      advantages([
        [
          [1, 1, 1],
          [1, 1],
        ],
        [[1, 1]],
      ]),
      /each of its 2 decisions, got \[1,1,1\]/,
    ],
    [
      "NaN",
      advantages([
        [
          [1, 1],
          [1, NaN],
        ],
        [[1, 1]],
      ]),
      /`advantages`\[0\]\[1\]\[1\] must be a finite number, got NaN/,
    ],
    [
      "text",
      advantages([
        [
          [1, 1],
          [1, "1"],
        ],
        [[1, 1]],
      ]),
      /must be a finite number, got "1"/,
    ],
    [
      "returns of another shape",
      { advantages: (all: readonly ScoredTrajectory[]) => ({ advantages: rewards(all), returns: [[[1, 1]]] }) },
      /`returns` must be an array with one entry for each of the 2/,
    ],
    [
      "units of some trajectories",
      { advantages: (all: readonly ScoredTrajectory[]) => ({ advantages: rewards(all), units: [0] }) },
      /one unit .* for each of the 2 trajectories, got \[0\]/,
    ],
    ["a loss that is no object", { loss: policyLoss }, /`loss` must return \{ loss \}, .*got the scalar itself/],
    ["a loss that is a number", { loss: () => ({ loss: 3 }) }, /`loss` must return \{ loss \}, .*got 3/],
    [
      "a loss that is no scalar",
      { loss: ({ logProbs }: LossNodes) => ({ loss: logProbs }) },
      /`loss` must return a scalar, got the shape \[.*\]\. Sum it/,
    ],
    [
      "a loss with an unknown input",
      { loss: ({ perToken }: LossNodes) => ({ loss: reduceSum(perToken("advantagez")) }) },
      /perToken\("advantagez"\), which nothing supplies\. Did you mean advantages\?/,
    ],
    [
      "a loss with old values, but no critic",
      { loss: ({ perToken }: LossNodes) => ({ loss: reduceSum(perToken("oldValues")) }) },
      /perToken\("oldValues"\), which needs `critic: true`/,
    ],
    [
      "a loss with a reference, but no weight of it",
      { loss: ({ perToken }: LossNodes) => ({ loss: reduceSum(perToken("refLogProbs")) }) },
      /perToken\("refLogProbs"\), which are computed where/,
    ],
    [
      "a loss with values, but no critic",
      { loss: ({ logProbs, values }: LossNodes) => ({ loss: reduceSum(sub(logProbs, values!)) }) },
      /sub takes nodes of the graph, but its operand 2 is undefined/,
    ],
    [
      "metrics that are no numbers",
      { metrics: () => ({ mine: "2" }) },
      /`metrics` must return metrics as numbers, got "2"/,
    ],
  ])("is an error with %s", async (_, other, message) => {
    await expect(update(other)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringMatching(message) as string,
    });
  });

  it("is not to blame for scores of the model that are not finite", async () => {
    const diverged = trajectories.map((trajectory) => ({
      ...trajectory,
      turns: trajectory.turns.map((sampled) => ({ ...sampled, logProbs: [NaN, -1] })),
    }));
    const toLogProbs = (all: readonly ScoredTrajectory[]) => ({
      advantages: all.map(({ turns }) => turns.map(({ oldLogProbs }) => oldLogProbs)),
    });
    await expect(update({ advantages: toLogProbs }, diverged)).rejects.toMatchObject({
      code: "TRAINING_DIVERGED",
      message: expect.stringContaining("log-probabilities or values are not finite") as string,
    });
  });

  it("is not looked at when one throws: the function is named, and the cause kept", async () => {
    const cause = new TypeError("no baseline");
    const fail = () => {
      throw cause;
    };
    await expect(update({ advantages: fail })).rejects.toMatchObject({
      code: "ALGORITHM_FAILED",
      message: "The algorithm mine: its `advantages` threw: no baseline",
      cause,
    });
    await expect(update({ loss: fail })).rejects.toThrow("The algorithm mine: its `loss` threw: no baseline");
  });
});
