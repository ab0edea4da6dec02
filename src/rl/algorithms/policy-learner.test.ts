import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { grpo, reinforce, rloo } from "./index.js";
import { TrainableModels, readTrainedValues } from "../../../test/support/trainable.js";
import { makeTurn } from "../../../test/support/turns.js";
import { Agent } from "../agent/agent.js";
import { openTrainable } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { Trajectory } from "../rollout/trajectory.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { input, mul, neg, reduceSum } from "../../engine/graph/index.js";
import { createLearner } from "./create-learner.js";
import { LOSS_TYPES, type GrpoOptions } from "./grpo/settings.js";
import type { GroupSpec, Metrics } from "./learner.js";
import { onlineDpo } from "./online-dpo/online-dpo.js";
import type { AlgorithmName, AlgorithmOptions } from "./algorithms.js";
import { lossMetrics } from "./policy-metrics.js";
import { floatVector } from "./shared/sequence-nodes.js";
import { LogProbScorer } from "./update/log-prob-scorer.js";
import { PolicyUpdater } from "./update/policy-updater.js";

const models = new TrainableModels();
afterAll(() => models.close());

let folder: string;
beforeAll(async () => {
  ({ folder } = await models.open({ scale: 0.1 }));
});

/** The same model with a new adapter each time. */
const openModel = async (): Promise<LanguageModel> => models.reopen(folder, { r: 8, seed: 1, valueHead: undefined });

/** Two arms, whatever the lever looks like. */
class BanditAgent extends Agent<string, number> {
  override formatPrompt(observation: string) {
    return observation;
  }

  override getChoices() {
    return ["a", "b"];
  }

  override extractAction(response: string) {
    return ["a", "b"].indexOf(response);
  }
}

/**
 * Plays one-turn episodes; gives the share of arm 1 among the last 100 pulls, and what each update
 * told.
 */
async function pull(algorithm: AlgorithmOptions, episodes: number, pays: (arm: number, episode: number) => number) {
  const agent = new BanditAgent(await openModel(), undefined, { ...algorithm, seed: 3 });
  const arms: number[] = [];
  const updates: Metrics[] = [];
  for (let episode = 0; episode < episodes; episode++) {
    arms.push(await agent.act(episode % 16 < 8 ? "left" : "right"));
    agent.assignReward(pays(arms.at(-1)!, episode));
    const metrics = await agent.terminateEpisode();
    if (metrics !== undefined) updates.push(metrics);
  }
  return { share: arms.slice(-100).filter((arm) => arm === 1).length / 100, updates };
}

const shared = { batchSize: 32, numGenerations: 8, learningRate: 0.02 };
const all: Readonly<Record<Exclude<AlgorithmName, "ppo">, AlgorithmOptions>> = {
  grpo: { algorithm: grpo({ ...shared, beta: 0.01 }) },
  rloo: { algorithm: rloo(shared) },
  reinforce: { algorithm: reinforce(shared) },
  "online-dpo": { algorithm: onlineDpo({ ...shared, numGenerations: 2 }) },
};

describe.each(Object.entries(all))("%s at work", (_, algorithm) => {
  it("learns which arm pays, and the other one when the sign is flipped", async () => {
    expect((await pull(algorithm, 320, (arm) => arm)).share).toBeGreaterThan(0.9);
    expect((await pull(algorithm, 320, (arm) => -arm)).share).toBeLessThan(0.1);
  });
});

describe("GRPO over 200 updates", () => {
  it("keeps exploring and adapts when the other arm starts to pay", async () => {
    const algorithm = grpo({ ...shared, batchSize: 16, lrSchedulerType: "constant", entropyCoef: 0.2 });
    // The better arm pays more often, not always.
    const random = new RandomStream(1);
    const best: number[] = [];
    const { updates } = await pull({ algorithm }, 3200, (arm, episode) => {
      const better = episode < 1600 ? 1 : 0;
      best.push(arm === better ? 1 : 0);
      return random.random() < (arm === better ? 0.8 : 0.2) ? 1 : 0;
    });
    expect(updates).toHaveLength(200);
    const share = (end: number) => best.slice(end - 200, end).reduce((sum, one) => sum + one, 0) / 200;
    expect(share(1600)).toBeGreaterThan(0.8);
    expect(share(3200)).toBeGreaterThan(0.8);
    expect(Math.min(...updates.map(({ entropy }) => entropy))).toBeGreaterThan(0.02);
  });
});

/** Two groups of three replies of one, two and three tokens; `rewards` are theirs. */
async function makeSegments(model: LanguageModel, rewards: readonly number[]): Promise<Trajectory[]> {
  const replies = [[20], [21, 22], [23, 24, 25], [20, 26], [27], [28, 29, 30]];
  const turns = replies.map((tokens, i) => makeTurn({ prompt: [5, 6, 7, 8 + Math.floor(i / 3)], tokens }));
  const scorer = new LogProbScorer(model.policy, { microBatchTokens: 1000 });
  const { logProbs } = await scorer.score(turns);
  await scorer.release();
  return turns.map((turn, i) => ({
    turns: [{ ...turn, logProbs: Array.from(logProbs[i]), reward: rewards[i] }],
    end: "terminated",
    bootstrapPrompt: undefined,
    group: Math.floor(i / 3),
  }));
}

const REWARDS = [1, 0, 0.5, 3, 2, 2];
const THREE = { numGenerations: 3, batchSize: 6, learningRate: 0.01, lrSchedulerType: "constant" } as const;

/**
 * Updates on the segments that `change` makes of the six; gives the trained values and what the
 * last update told.
 */
async function update(
  algorithm: AlgorithmOptions,
  {
    microBatchTokens = 10_000,
    updates = 1,
    rewards = REWARDS,
    progress = 0,
    onMetrics = () => undefined,
    change = (segments) => segments,
  }: {
    microBatchTokens?: number;
    updates?: number;
    /** The share of the run before an update. */
    progress?: number | ((update: number) => number);
    onMetrics?: (metrics: Metrics) => void;
    rewards?: readonly number[];
    change?: (segments: readonly Trajectory[]) => readonly Trajectory[];
  } = {},
) {
  const model = await openModel();
  const learner = await createLearner(model, {
    ...algorithm,
    microBatchTokens,
    temperature: 1,
    isTruncatedSampling: false,
    random: new RandomStream(5),
  });
  const segments = change(await makeSegments(model, rewards));
  let metrics: Metrics = {};
  for (let i = 0; i < updates; i++) {
    const share = typeof progress === "number" ? progress : progress(i);
    metrics = await learner.update(await learner.prepare(segments), { progress: share });
    onMetrics(metrics);
  }
  const values = await readTrainedValues(model);
  await learner.release();
  return { metrics, values };
}

function expectClose(found: ArrayLike<number>, expected: ArrayLike<number>, digits: number): void {
  Array.from(found).forEach((value, i) => expect(value).toBeCloseTo(expected[i], digits));
}

function distance(a: Float32Array, b: Float32Array): number {
  return Math.hypot(...a.map((value, i) => value - b[i]));
}

describe("an update", () => {
  const kinds: Readonly<Record<string, AlgorithmOptions>> = {
    ...Object.fromEntries(
      LOSS_TYPES.map((lossType) => [lossType, { algorithm: grpo({ ...THREE, lossType, beta: 0.1 }) }]),
    ),
    gspo: {
      algorithm: grpo({
        ...THREE,
        lossType: "grpo",
        importanceSamplingLevel: "sequence",
        offPolicyMaskThreshold: 0.5,
        epsilon: 0.9,
      }),
    },
    "top entropies": { algorithm: grpo({ ...THREE, topEntropyQuantile: 0.5, entropyCoef: 0.1 }) },
    rloo: { algorithm: rloo({ ...THREE, beta: 0.1, epsilon: 0.9 }) },
    reinforce: { algorithm: reinforce({ ...THREE, klCoef: 0.1, entropyCoef: 0.1 }) },
  };

  it.each(Object.entries(kinds))("of %s is the same in many micro-batches as in one", async (_, algorithm) => {
    // Ratios, divergences and signs differ from those of the start only after a step.
    const whole = await update(algorithm, { updates: 3 });
    const split = await update(algorithm, { updates: 3, microBatchTokens: 6 });
    const { values: start } = await update(algorithm, { updates: 0 });
    expect(distance(split.values, whole.values)).toBeLessThan(1e-3 * distance(whole.values, start));
    for (const [name, value] of Object.entries(whole.metrics))
      expect([name, split.metrics[name]]).toEqual([name, expect.closeTo(value, 3)]);
  });

  it("drops groups with equal returns and reports their fraction", async () => {
    const half = [1, 0, 0.5, 2, 2, 2];
    const both = await update({ algorithm: grpo(THREE) }, { rewards: half });
    const first = await update(
      { algorithm: grpo(THREE) },
      { rewards: half, change: (segments) => segments.slice(0, 3) },
    );
    expect(both.metrics.frac_reward_zero_std).toBe(0.5);
    expect(first.metrics.frac_reward_zero_std).toBe(0);
    expectClose(both.values, first.values, 6);
    const kept = await update(
      { algorithm: grpo({ ...THREE, filterGroups: false, maxGradNorm: 1e9 }) },
      { rewards: half },
    );
    // They stand in the mean that is taken over tokens.
    expect(kept.metrics.grad_norm).toBeCloseTo(both.metrics.grad_norm / 2, 4);
  });

  it("has an adaptive entropy bonus from the second step on, while the entropy is at most its target", async () => {
    const adaptive = { ...THREE, useAdaptiveEntropy: true, entropyCoef: 0.3, entropyCoefDelta: 0.1 };
    const of = (options: GrpoOptions, updates: number) =>
      update({ algorithm: grpo({ ...THREE, ...options }) }, { updates });
    const low = { ...adaptive, entropyTarget: 100 };
    const [plain, first] = [await of({}, 1), await of(low, 1)];
    expectClose(first.values, plain.values, 6);
    expect(first.metrics.entropy_coef).toBeCloseTo(0.4, 12);
    const [second, twice, high] = [await of(low, 2), await of({}, 2), await of({ ...adaptive, entropyTarget: 0 }, 2)];
    expect(second.metrics.entropy_coef).toBeCloseTo(0.5, 12);
    expect(distance(second.values, twice.values)).toBeGreaterThan(1e-4);
    expectClose(high.values, twice.values, 6);
    expect(high.metrics.entropy_coef).toBeCloseTo(0.1, 12);
    expect(plain.metrics).not.toHaveProperty("entropy_coef");
  });

  it("continues an adaptive entropy bonus from saved state", async () => {
    const algorithm = grpo({ ...THREE, useAdaptiveEntropy: true, entropyTarget: 100, entropyCoef: 0.3 });
    const options = { microBatchTokens: 1000, temperature: 1, isTruncatedSampling: false };
    const whole = await update({ algorithm }, { updates: 3, microBatchTokens: 1000 });
    const model = await openModel();
    const create = async (seed: number) =>
      createLearner(model, { algorithm, ...options, random: new RandomStream(seed) });
    const segments = await makeSegments(model, REWARDS);
    const learner = await create(5);
    await learner.update(await learner.prepare(segments));
    const { optimizer, state } = await learner.getState();
    await learner.release();
    const resumed = await create(6);
    await resumed.setState({ optimizer, state: JSON.parse(JSON.stringify(state)) as unknown });
    for (let i = 0; i < 2; i++) await resumed.update(await resumed.prepare(segments));
    expect(await readTrainedValues(model)).toEqual(whole.values);
    await resumed.release();
  });

  it("keeps groups with equal returns for an entropy bonus", async () => {
    const options = { ...THREE, entropyCoef: 0.1 };
    const same = await update({ algorithm: grpo(options) }, { rewards: [1, 1, 1, 2, 2, 2] });
    expect(same.metrics).toMatchObject({ frac_reward_zero_std: 1, num_optimizer_steps: 1 });
    const none = await update({ algorithm: grpo(THREE) }, { rewards: [1, 1, 1, 2, 2, 2] });
    expect(none.metrics).toEqual({
      reward: 1.5,
      reward_std: expect.closeTo(Math.sqrt(0.3), 12) as number,
      frac_reward_zero_std: 1,
      num_optimizer_steps: 0,
      num_skipped_steps: 0,
    });
  });

  it("masks truncated completions and episodes, if configured", async () => {
    const cutOff = (segments: readonly Trajectory[]) =>
      segments.map((segment, i): Trajectory =>
        i % 3 === 2
          ? { ...segment, end: "truncated", turns: [{ ...segment.turns[0], finishReason: "length" }] }
          : segment,
      );
    const train = async (options: GrpoOptions) =>
      update({ algorithm: grpo({ ...THREE, ...options }) }, { change: cutOff });
    const [with_, replies, episodes] = [
      await train({}),
      await train({ maskTruncatedCompletions: true }),
      await train({ maskTruncatedEpisodes: true }),
    ];
    expectClose(replies.values, episodes.values, 7);
    expect(Math.max(...with_.values.map((value, i) => Math.abs(value - replies.values[i])))).toBeGreaterThan(1e-3);
    // Six tokens of twelve are left, of four sequences out of six.
    expect(replies.metrics.reward).toBe(with_.metrics.reward);
  });

  it("leaves out a completion that no function scored", async () => {
    const unscored = await update({ algorithm: grpo(THREE) }, { rewards: [1, 0, Number.NaN, 3, 2, 2] });
    const without = await update({ algorithm: grpo(THREE) }, { change: (all) => [all[0], all[1], ...all.slice(3)] });
    expectClose(unscored.values, without.values, 6);
    expect(unscored.metrics.reward).toBe((1 + 0 + 3 + 2 + 2) / 5);
  });

  it("keeps groups with equal returns for a KL to the reference, and RLOO's for an entropy bonus", async () => {
    const steps = async (algorithm: AlgorithmOptions["algorithm"]) =>
      (await update({ algorithm }, { rewards: [1, 1, 1, 2, 2, 2] })).metrics.num_optimizer_steps;
    expect(await steps(grpo({ ...THREE, beta: 0.1 }))).toBe(1);
    expect(await steps(rloo({ ...THREE, beta: 0, entropyCoef: 0.1 }))).toBe(1);
    expect(await steps(rloo({ ...THREE, beta: 0, filterGroups: true }))).toBe(0);
    expect(await steps(rloo({ ...THREE, beta: 0, filterGroups: false }))).toBe(1);
  });

  it("averages over the tokens of the mean minibatch, and schedules the entropy bonus", async () => {
    const algorithm = (options: GrpoOptions) =>
      grpo({ ...THREE, learningRate: 0, scaleRewards: "none", lossType: "dapo", ...options });
    // Advantages of the six completions, of 1, 2, 3, 2, 1 and 3 tokens.
    const advantages = REWARDS.map((reward, i) => reward - (i < 3 ? 0.5 : 7 / 3));
    const lengths = [1, 2, 3, 2, 1, 3];
    const mean = -advantages.reduce((sum, advantage, i) => sum + advantage * lengths[i], 0) / 12;
    for (const miniBatchSize of [1, 2, 6]) {
      const { metrics } = await update({ algorithm: algorithm({ miniBatchSize }) });
      expect([miniBatchSize, metrics.loss]).toEqual([miniBatchSize, expect.closeTo(mean, 5)]);
    }
    const scheduled = { entropyCoef: 0.2, entropySchedulerType: "linear" } as const;
    const { metrics } = await update({ algorithm: algorithm(scheduled) }, { progress: 0.25 });
    expect(metrics.entropy).toBeGreaterThan(1);
    expect(metrics.loss).toBeCloseTo(mean - 0.2 * 0.75 * metrics.entropy, 5);
  });

  it("follows the learning rate's schedule, and estimates the run's steps for a warm-up", async () => {
    const rates = async (options: GrpoOptions, progresses: readonly number[]) => {
      const rows: number[] = [];
      await update(
        { algorithm: grpo({ ...THREE, ...options }) },
        {
          updates: progresses.length,
          progress: (i) => progresses[i],
          onMetrics: (row) => rows.push(row.learning_rate),
        },
      );
      return rows.map((rate) => rate / THREE.learningRate);
    };
    const close = (...values: number[]) => values.map((value) => expect.closeTo(value, 9) as number);
    expect(await rates({ lrSchedulerType: "linear" }, [0, 0.25, 0.75])).toEqual(close(1, 0.75, 0.25));
    expect(await rates({ warmupSteps: 2 }, [0, 0.1, 0.2, 0.3])).toEqual(close(0, 0.5, 1, 1));
    // After one of four steps, and after two.
    const warm = { warmupSteps: 1, lrSchedulerType: "linear" } as const;
    expect(await rates(warm, [0, 0.25, 0.5])).toEqual(close(0, 1, 1 - 1 / 3));
  });

  it("runs several epochs of minibatches, if configured", async () => {
    const { metrics } = await update({ algorithm: grpo({ ...THREE, numIterations: 3, miniBatchSize: 3 }) });
    expect(metrics).toMatchObject({ num_optimizer_steps: 6, num_skipped_steps: 0 });
    expect(metrics["clip_ratio/region_mean"]).toBeGreaterThan(0);
    const once = await update({ algorithm: grpo(THREE) });
    expect(once.metrics["clip_ratio/region_mean"]).toBe(0);
  });
});

it("gives a refused step the scheduled rate and no gradient norm", async () => {
  const { policy } = await openModel();
  const updater = new PolicyUpdater(policy, {
    loss: ({ logProbs, selected }) => ({
      loss: neg(reduceSum(mul(logProbs, input("weights", "float32", [selected])))),
    }),
    entropy: "none",
    optimizer: { learningRate: 0.1 },
    microBatchTokens: 64,
  });
  const turn = { prompt: [1, 2], tokens: [3], allowedTokens: undefined };
  const step = async (isRefused: boolean) =>
    updater.step([turn], () => ({ weights: floatVector([1]) }), {
      temperature: 1,
      random: new RandomStream(1),
      learningRateFactor: 0.25,
      shouldStep: () => !isRefused,
    });
  const [taken, refused] = [await step(false), await step(true)];
  expect([taken.learningRate, taken.skipped, refused.learningRate, refused.skipped]).toEqual([
    0.025,
    false,
    0.025,
    true,
  ]);
  const outcomes = [taken, refused].map((result) => ({ turns: [], result, isLast: false, movesReference: false }));
  expect(lossMetrics(outcomes, () => ({}))).toMatchObject({ learning_rate: 0.025, grad_norm: taken.gradNorm });
  expect(lossMetrics(outcomes.slice(1), () => ({}))).not.toHaveProperty("grad_norm");
  await updater.release();
});

describe("rolloutSpec", () => {
  const wishOf = async (options: AlgorithmOptions): Promise<GroupSpec> => {
    const model = await openModel();
    const traits = { temperature: 1, isTruncatedSampling: false, random: new RandomStream(1) };
    return (await createLearner(model, { ...options, ...traits })).rolloutSpec as GroupSpec;
  };

  it("requests groups that start alike, and resamples groups without signal", async () => {
    const wish = await wishOf({
      algorithm: grpo({ batchSize: 24, numGenerations: 3, maxResamples: 2, minTurns: 100 }),
    });
    expect(wish).toMatchObject({ groups: 8, groupSize: 3, maxResamples: 2, minTurns: 100 });
    const segments = await makeSegments(await openModel(), REWARDS);
    const rewarded = (...rewards: number[]) =>
      rewards.map((reward, i): Trajectory => ({ ...segments[i], turns: [{ ...segments[i].turns[0], reward }] }));
    expect(await wish.hasSignal(rewarded(1, 0, 1))).toBe(true);
    expect(await wish.hasSignal(rewarded(2, 2, 2))).toBe(false);
  });

  it("requests separate starts where the update is the group", async () => {
    expect(await wishOf({ algorithm: grpo({ batchSize: 10, grouping: "batch" }) })).toMatchObject({
      groups: 10,
      groupSize: 1,
    });
    expect(await wishOf({ algorithm: reinforce({ batchSize: 7 }) })).toMatchObject({
      groups: 7,
      groupSize: 1,
      maxResamples: 0,
    });
  });
});

describe("createLearner", () => {
  const traits = { temperature: 1, isTruncatedSampling: false, random: new RandomStream(1) };

  it("rejects a model with a value head for GRPO", async () => {
    const critic = await models.reopen(folder);
    await expect(createLearner(critic, { ...traits, algorithm: grpo() })).rejects.toThrow(
      "GRPO cannot train the model: it has a value head",
    );
  });

  it("rejects full fine-tuning with a KL to the reference", async () => {
    const model = await openTrainable(folder, { device: "cpu", threads: 1, peftConfig: null, valueHead: null });
    models.track(model);
    await expect(createLearner(model, { ...traits, algorithm: rloo() })).rejects.toThrow(
      "Set beta to 0, or train an adapter",
    );
    await (await createLearner(model, { ...traits, algorithm: rloo({ beta: 0 }) })).release();
  });

  it("rejects options without their algorithm", async () => {
    const model = await openModel();
    const create = (options: object) => createLearner(model, { ...traits, ...options });
    await expect(create({ grpo: { batchSize: 8 } })).rejects.toThrow("write `algorithm: grpo({ ... })`");
    await expect(create({ algorithm: "grpo" })).rejects.toThrow('got "grpo"');
    await expect(create({ algorithm: grpo })).rejects.toThrow("`algorithm` must be the result of ppo()");
  });
});
