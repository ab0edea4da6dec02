import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { ppo } from "../index.js";
import { MAX_REWARD } from "../../../envs/reward-limit.js";
import { TrainableModels, readTrainedValues } from "../../../../test/support/trainable.js";
import { Agent } from "../../agent/agent.js";
import type { AgentOptions } from "../../agent/agent-options.js";
import { AutoModelForCausalLM, type LanguageModel } from "../../../generation/index.js";
import { mul, sub } from "../../../engine/graph/index.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import { makeTurn } from "../../../../test/support/turns.js";
import type { Trajectory } from "../../rollout/trajectory.js";
import type { AdvantageResult } from "../algorithm-definition.js";
import { createLearner } from "../create-learner.js";
import { LogProbScorer } from "../update/log-prob-scorer.js";
import type { Metrics } from "../learner.js";
import type { PpoOptions } from "./settings.js";

/** The sign of the policy's loss; the value loss keeps its own. */
const sign = vi.hoisted(() => ({ isFlipped: false }));
vi.mock(import("./loss.js"), async (load) => {
  const original = await load();
  return {
    ...original,
    ppoLoss: (policy, config) => {
      const objective = original.ppoLoss(policy, config);
      if (!sign.isFlipped) return objective;
      return { ...objective, loss: sub(objective.loss, mul(objective.statistics!.policyLoss, 2)) };
    },
  };
});
afterEach(() => {
  sign.isFlipped = false;
});

const models = new TrainableModels();
afterAll(() => models.close());

const CONTEXTS = ["left", "right"];

/** Two arms, whichever side the lever is on. */
class BanditAgent extends Agent<string, number> {
  override getSystemPrompt() {
    return "Pull an arm.";
  }

  override formatObservation(observation: string) {
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
 * With the largest reward, the squared error of the values overflows in 32 bits; with rewards of 0
 * and 1 it does not.
 */
const OVERFLOWING: PpoOptions = { numPpoEpochs: 1, whitenAdvantages: false, vfCoef: 1e28, maxGradNorm: 1 };
const BATCH: PpoOptions = { batchSize: 32, miniBatchSize: 16, numPpoEpochs: 2, learningRate: 0.005, initKlCoef: 0 };

async function bandit(settings: PpoOptions = {}, options: AgentOptions<string, number> = {}, scale = 0.1) {
  const model = await models.open({ scale });
  return {
    model,
    agent: new BanditAgent(model, undefined, { algorithm: ppo({ ...BATCH, ...settings }), seed: 3, ...options }),
  };
}

/**
 * Plays episodes of one turn; gives the share of arm 1 in the last hundred, and what each update
 * told.
 */
async function pull(agent: BanditAgent, episodes: number, pays: (arm: number, context: string) => number) {
  const arms: number[] = [];
  const updates: Metrics[] = [];
  for (let episode = 0; episode < episodes; episode++) {
    const context = CONTEXTS[episode % 2];
    const arm = await agent.act(context);
    agent.assignReward(pays(arm, context));
    arms.push(arm);
    const metrics = await agent.terminateEpisode();
    if (metrics !== undefined) updates.push(metrics);
  }
  const recent = arms.slice(-100);
  return { share: recent.filter((arm) => arm === 1).length / recent.length, updates };
}

/** What the value head makes of each context. */
async function valuesOf(model: LanguageModel, agent: BanditAgent): Promise<number[]> {
  const scorer = new LogProbScorer(model.policy, { microBatchTokens: 1000 });

  const prompts = CONTEXTS.map((context) => {
    const play = agent.newEpisode(new RandomStream(0));
    play.observe(context, {});
    return { prompt: play.buildPrompt(), tokens: [], allowedTokens: undefined };
  });
  const { values } = await scorer.score(prompts);
  await scorer.release();
  return values!.map(([value]) => value);
}

describe("ppo", () => {
  it("learns which arm pays, and the other one with the sign of the policy loss flipped", async () => {
    const { agent } = await bandit();
    expect((await pull(agent, 320, (arm) => arm)).share).toBeGreaterThan(0.9);
    sign.isFlipped = true;
    const { agent: contrary } = await bandit();
    expect((await pull(contrary, 320, (arm) => arm)).share).toBeLessThan(0.1);
  });

  it("learns the values of states", async () => {
    const { model, agent } = await bandit({ vfCoef: 1, cliprangeValue: 10 }, {}, 0.4);
    const { updates } = await pull(agent, 640, (_arm, context) => (context === "left" ? 2 : -1));
    const [left, right] = await valuesOf(model, agent);
    expect(left).toBeCloseTo(2, 0);
    expect(right).toBeCloseTo(-1, 0);
    expect(updates[0]["val/var_explained"]).toBeLessThan(0.5);
    expect(updates.at(-1)!["val/var_explained"]).toBeGreaterThan(0.9);
  });

  it("scores only turns without sampled values, with the same result", async () => {
    const { agent: player } = await bandit();
    const learner = await player.getLearner();
    const prepare = vi.spyOn(learner, "prepare").mockResolvedValue({});
    vi.spyOn(learner, "update").mockResolvedValue({});
    await pull(player, 32, (arm) => arm);
    const played = prepare.mock.calls[0][0];
    const partly = played.map((segment, i) =>
      i % 2 === 0 ? segment : { ...segment, turns: segment.turns.map((turn) => ({ ...turn, values: [NaN] })) },
    );
    const scored = vi.spyOn(LogProbScorer.prototype, "score");
    const results: Metrics[] = [];
    for (const segments of [played, partly]) {
      const fresh = await (await bandit()).agent.getLearner();
      results.push(await fresh.update(await fresh.prepare(segments)));
    }
    expect(scored.mock.calls.map(([turns]) => turns.length)).toEqual([16]);
    scored.mockRestore();
    for (const [name, value] of Object.entries(results[0])) expect(results[1][name]).toBeCloseTo(value, 4);
  });

  it("has no advantages where all returns are equal, which whitening would enlarge from errors of the values", async () => {
    const play = (rewards: readonly number[], value: number, prompt: number): Trajectory => ({
      turns: rewards.map((reward, i) =>
        makeTurn({ prompt: [5, 6, prompt, 8 + i], tokens: [20], logProbs: [-1], values: [value], reward }),
      ),
      end: "terminated",
      bootstrapPrompt: undefined,
      group: 0,
    });
    const advantagesOf = async (plays: readonly Trajectory[], settings: PpoOptions) => {
      const learner = await createLearner(await models.open({ scale: 0.1 }), {
        algorithm: ppo({ ...BATCH, gamma: 1, lam: 1, ...settings }),
        temperature: 1,
        isTruncatedSampling: false,
        random: new RandomStream(1),
      });
      const { result } = (await learner.prepare(plays)) as { result: AdvantageResult };
      await learner.release();
      return result.advantages.flat().flatMap((row) => Array.from(row));
    };
    const close = (...values: number[]) => values.map((value) => expect.closeTo(value, 6) as number);
    const equal = [play([1], 0.5, 1), play([1], -0.25, 2)];
    expect(await advantagesOf(equal, {})).toEqual([0, 0]);
    expect(await advantagesOf(equal, { whitenAdvantages: false })).toEqual(close(0.5, 1.25));
    const half = close(-Math.SQRT1_2, Math.SQRT1_2);
    // The penalty of a KL may differ where returns are equal.
    const penalized = await advantagesOf(equal, { initKlCoef: 1e-12 });
    expect(penalized).toEqual(half);
    expect(await advantagesOf([play([1], 0.5, 1), play([2], -0.25, 2)], {})).toEqual(half);
    // Returns of 1 at both turns, and of 0.5 and 1.
    const late = [play([0, 1], 0.5, 1), play([1], -0.25, 2)];
    expect(await advantagesOf(late, {})).toEqual([0, 0, 0]);
    const discounted = await advantagesOf(late, { gamma: 0.5 });
    expect(discounted.every((value) => value !== 0)).toBe(true);
  });

  it("steps the value head at its learning rate", async () => {
    const { model, agent } = await bandit({
      numPpoEpochs: 1,
      miniBatchSize: 32,
      vfCoef: 1,
      cliprangeValue: 10,
      learningRate: 1e-3,
      valueHeadLearningRate: 4e-3,
      maxGradNorm: 1e9,
    });
    const { parameters } = model.causalLM;
    const readAll = async () => Promise.all(parameters.names.map(async (name) => parameters.read(name)));
    const before = await readAll();
    await pull(agent, 32, (arm) => arm);
    const after = await readAll();
    // Adam's first step has the size of the learning rate wherever the gradient is not tiny.
    const largest = (isHead: boolean) =>
      Math.max(
        ...parameters.names.flatMap((name, i) =>
          name.startsWith("v_head.") === isHead
            ? Array.from(after[i], (value, j) => Math.abs(value - before[i][j]))
            : [],
        ),
      );
    expect(largest(true)).toBeCloseTo(4e-3, 5);
    expect(largest(false)).toBeCloseTo(1e-3, 5);
  });

  it("trains only the value head during its warm-up", async () => {
    const { model, agent } = await bandit({ valueWarmup: 2, vfCoef: 1, entropyCoef: 0.1 });
    const { parameters } = model.causalLM;
    const bodies = parameters.names.filter((name) => !name.startsWith("v_head."));
    const body = async () => Promise.all(bodies.map(async (name) => parameters.read(name)));
    const head = async () => parameters.read("v_head.summary.weight");
    const [bodyBefore, headBefore] = [await body(), await head()];
    await pull(agent, 64, () => 1);
    expect(await body()).toEqual(bodyBefore);
    expect(await head()).not.toEqual(headBefore);
    await pull(agent, 32, () => 1);
    expect(await body()).not.toEqual(bodyBefore);
  });

  it("learns equally from large rewards with reward scaling", async () => {
    const values = { vfCoef: 1, cliprangeValue: 0.5 };
    const { updates } = await pull((await bandit({ ...values, rewardScaling: true })).agent, 320, (arm) => 400 * arm);
    const { updates: raw } = await pull((await bandit(values)).agent, 320, (arm) => 400 * arm);
    // Unscaled, the gradient is all value; it is the policy's that is wanted.
    expect(updates.at(-1)!["objective/reward_scale"]).toBeGreaterThan(200);
    expect(updates.at(-1)!.grad_norm).toBeLessThan(raw.at(-1)!.grad_norm / 50);
    expect(updates.at(-1)!["objective/scores"]).toBeGreaterThan(360);
  });

  it("ends an update at the target KL", async () => {
    const slow = { numPpoEpochs: 8, learningRate: 0.0002 };
    const { agent } = await bandit(slow);
    const [whole] = (await pull(agent, 32, (arm) => arm)).updates;
    expect(whole.num_optimizer_steps).toBe(16);
    const { agent: careful } = await bandit({ ...slow, targetKl: 1e-3 });
    const [stopped] = (await pull(careful, 32, (arm) => arm)).updates;
    expect(stopped.num_optimizer_steps).toBeGreaterThan(0);
    expect(stopped.num_optimizer_steps).toBeLessThan(12);
    expect(stopped.num_skipped_steps).toBe(0);
  });

  it("does not follow noise: with random rewards, many epochs at a high learning rate keep the entropy", async () => {
    for (const seed of [1, 2, 3]) {
      const { agent } = await bandit({ numPpoEpochs: 16, learningRate: 5e-3 }, { seed });
      const random = new RandomStream(seed, [77]);
      const { updates } = await pull(agent, 160, () => (random.random() < 0.5 ? 1 : -1));
      expect(updates[4]["objective/entropy"]).toBeGreaterThan(0.45);
    }
  });

  it("keeps the policy near the reference with a KL penalty", async () => {
    const { agent } = await bandit({ initKlCoef: 5, adaptiveKl: false });
    const { share, updates } = await pull(agent, 320, (arm) => arm);
    expect(share).toBeLessThan(0.75);
    // A policy that always pulls the same arm is some 0.7 nats away.
    expect(updates.at(-1)!["objective/kl"]).toBeLessThan(0.4);
    expect(updates.at(-1)!["objective/kl_coef"]).toBe(5);
  });

  it("skips and counts steps with a non-finite loss, and stops after several", async () => {
    const { model, agent } = await bandit(OVERFLOWING);
    const before = await readTrainedValues(model);
    const [metrics] = (await pull(agent, 32, () => MAX_REWARD)).updates;
    expect(metrics).toMatchObject({ num_optimizer_steps: 0, num_skipped_steps: 2 });
    expect(await readTrainedValues(model)).toEqual(before);
    await expect(pull(agent, 64, () => MAX_REWARD)).rejects.toMatchObject({ code: "TRAINING_DIVERGED" });
    expect(await readTrainedValues(model)).toEqual(before);
  });

  it("counts only consecutive failures", async () => {
    const { model, agent } = await bandit(OVERFLOWING);
    const before = await readTrainedValues(model);
    for (let i = 0; i < 3; i++) {
      await pull(agent, 32, () => MAX_REWARD);
      const [metrics] = (await pull(agent, 32, (arm) => arm)).updates;
      expect(metrics).toMatchObject({ num_optimizer_steps: 2, num_skipped_steps: 0 });
    }
    expect(await readTrainedValues(model)).not.toEqual(before);
  });

  it("skips minibatches beyond the ratio threshold", async () => {
    const { model, agent } = await bandit({ numPpoEpochs: 6, learningRate: 2, ratioThreshold: 1.000001 });
    const [metrics] = (await pull(agent, 32, (arm) => arm)).updates;
    expect(metrics.num_skipped_steps).toBeGreaterThan(0);
    expect((await readTrainedValues(model)).every(Number.isFinite)).toBe(true);
  });

  it("continues exactly from a saved state", async () => {
    const { model, agent } = await bandit();
    await pull(agent, 64, (arm) => arm);
    const learner = await agent.getLearner();
    const saved = await learner.getState();
    const state = JSON.parse(JSON.stringify(saved.state)) as unknown;
    const values = await readTrainedValues(model);

    const other = await models.reopen(model.folder);
    await other.causalLM.runtime.write(other.causalLM.parameters.values, values);
    other.causalLM.markParametersChanged();
    const twin = new BanditAgent(other, undefined, agent.options);
    await (await twin.getLearner()).setState({ optimizer: saved.optimizer, state });

    const segments = await segmentsOf(agent);
    const twinLearner = await twin.getLearner();
    const [mine, theirs] = [
      await learner.update(await learner.prepare(segments)),
      await twinLearner.update(await twinLearner.prepare(segments)),
    ];
    expect(theirs).toEqual(mine);
    expect(await readTrainedValues(other)).toEqual(await readTrainedValues(model));
  });

  it.each([
    [{ batchSize: 0 }, "`batchSize` must be an integer >= 1"],
    [{ batchSise: 8 }, "Did you mean batchSize?"],
    [{ miniBatchSize: 64 }, "a batch has only 32 samples"],
  ])("rejects %j in the constructor", async (ppo, message) => {
    await expect(bandit(ppo as PpoOptions)).rejects.toThrow(message);
  });

  it("requires trainable parameters, a value head and a temperature above 0", async () => {
    const { model } = await bandit();
    const bare = await AutoModelForCausalLM.fromPretrained(model.folder, { device: "cpu", threads: 1 });
    await expect(new BanditAgent(bare).getLearner()).rejects.toThrow("it has no trainable parameters");
    await bare.close();
    const greedy = new BanditAgent(model, undefined, { generation: { temperature: 0 } });
    await expect(greedy.getLearner()).rejects.toThrow("a temperature above 0");
  });
});

/** One more batch of this agent's episodes, not yet trained. */
async function segmentsOf(agent: BanditAgent) {
  const learner = await agent.getLearner();
  const prepare = vi.spyOn(learner, "prepare").mockResolvedValueOnce({});
  const update = vi.spyOn(learner, "update").mockResolvedValueOnce({});
  await pull(agent, 32, (arm) => arm);
  const [segments] = prepare.mock.calls[0];
  prepare.mockRestore();
  update.mockRestore();
  return segments;
}
