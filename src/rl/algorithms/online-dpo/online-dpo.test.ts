import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RandomStream } from "../../../core/random/random-stream.js";
import { AutoModelForCausalLM } from "../../../generation/auto-model.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import { makeTrainable } from "../../../models/adapters/get-peft-model.js";
import { readJson } from "../../../core/files/json-file.js";
import { SafetensorsFile } from "../../../models/files/index.js";
import { TrainableModels } from "../../../../test/support/trainable.js";
import type { Turn } from "../../rollout/trajectory.js";
import type { ScoredTrajectory, TurnSample } from "../algorithm-definition.js";
import { tokenInputs } from "../shared/loss-nodes.js";
import { groupUnits, minibatchTotals, toTurnSamples } from "../turn-samples.js";
import { LogProbScorer } from "../update/log-prob-scorer.js";
import { PolicyUpdater } from "../update/policy-updater.js";
import { onlineDpo, pairAdvantages, pairInputs, resolveOnlineDpoConfig, type OnlineDpoOptions } from "./online-dpo.js";

const fixtures = fileURLToPath(new URL("../../../../test/fixtures/", import.meta.url));

/** Numbers that TRL computed; generate.py next to them. */
interface Fixture {
  readonly prompts: readonly number[][];
  readonly completions: readonly (readonly number[][])[];
  readonly rewards: readonly number[][];
  readonly cases: readonly (Pick<OnlineDpoOptions, "beta" | "lossType" | "missingEosPenalty"> & {
    readonly loss: number;
    readonly metrics: Readonly<Record<string, number>>;
  })[];
}

const models = new TrainableModels();
let fixture: Fixture;
let policy: LanguageModel;
let reference: LanguageModel;
beforeAll(async () => {
  fixture = (await readJson(`${fixtures}online-dpo/cases.json`)) as unknown as Fixture;
  const open = async (name: string) =>
    AutoModelForCausalLM.fromPretrained(`${fixtures}preferences/${name}`, { device: "cpu", threads: 1 });
  const base = await open("policy");
  reference = await open("reference");
  models.track(base);
  models.track(reference);
  policy = base.withCausalLM(await makeTrainable(base.causalLM, /layers/));
});
afterAll(() => models.close());

const turn = (prompt: readonly number[], tokens: readonly number[], others: Partial<Turn> = {}) =>
  ({ prompt, tokens, allowedTokens: undefined, reward: 0, finishReason: "stop", ...others }) as Turn;

/** Episodes of one or several turns; a turn is its reward. */
function scored(groups: readonly (readonly (readonly number[])[])[]): ScoredTrajectory[] {
  return groups.flatMap((episodes, group) =>
    episodes.map((rewards) => ({
      group,
      end: "terminated" as const,
      bootstrapValue: 0,
      rewardsPerFunction: undefined,
      turns: rewards.map((reward) => ({
        turn: turn([1], [2], { reward }),
        oldLogProbs: Float64Array.of(-1, -2),
        oldValues: undefined,
        refLogProbs: undefined,
        entropies: undefined,
      })),
    })),
  );
}

const signs = (groups: Parameters<typeof scored>[0], options: OnlineDpoOptions = {}) => {
  const { advantages, units } = pairAdvantages(scored(groups), resolveOnlineDpoConfig(options));
  return { signs: advantages.map((turns) => turns[0][0]), units };
};

describe("pairAdvantages", () => {
  it("pairs the best and the worst return of each group, and leaves out the others", () => {
    const groups = [
      [[1, 0], [3], [-1, -1], [2]],
      [[0], [1], [1, 1], [1]],
    ];
    const found = signs(groups, { numGenerations: 4 });
    expect(found.signs).toEqual([0, 1, -1, 0, -1, 0, 1, 0]);
    expect(found.units).toEqual([undefined, 0, 0, undefined, 1, undefined, 1, undefined]);
  });

  it("has no pair of equal returns, unless groups are not filtered, as in TRL", () => {
    expect(signs([[[1], [1]]])).toEqual({ signs: [0, 0], units: [undefined, undefined] });
    expect(signs([[[1], [1]]], { filterGroups: false })).toEqual({ signs: [1, -1], units: [0, 0] });
  });

  it("leaves out completions without a reward", () => {
    expect(
      signs([
        [[NaN], [1]],
        [[2], [NaN], [0]],
      ]).units,
    ).toEqual([undefined, undefined, 1, undefined, 1]);
  });
});

describe("resolveOnlineDpoConfig", () => {
  it("has TRL 1.16's defaults and refuses minibatches without room for a pair", () => {
    expect(resolveOnlineDpoConfig()).toMatchObject({ beta: 0.1, lossType: "sigmoid", learningRate: 5e-7 });
    expect(() => resolveOnlineDpoConfig({ miniBatchSize: 1 })).toThrow(/a pair has at least 2 turns/);
    expect(() => resolveOnlineDpoConfig({ beta: 0 })).toThrow(/beta/);
  });
});

describe("onlineDpo", () => {
  /** Loss, statistics and gradients of a case with micro-batches of some tokens. */
  async function compute(index: number, microBatchTokens: number) {
    const { prompts, completions, rewards, cases } = fixture;
    const { beta, lossType, missingEosPenalty } = cases[index];
    const config = resolveOnlineDpoConfig({ beta, lossType, missingEosPenalty, filterGroups: false });
    const turns = completions.flatMap((pair, i) =>
      pair.map((tokens, c) =>
        turn(prompts[i], tokens, { reward: rewards[i][c], finishReason: tokens.at(-1) === 2 ? "stop" : "length" }),
      ),
    );
    const score = async (model: LanguageModel) =>
      (await new LogProbScorer(model.policy, { microBatchTokens: 64 }).score(turns)).logProbs;
    const [own, ref] = [await score(policy), await score(reference)];
    const trajectories = turns.map((each, i) => ({
      ...scored([[[0]]])[0],
      group: Math.floor(i / 2),
      turns: [{ turn: each, oldLogProbs: own[i], refLogProbs: ref[i], oldValues: undefined, entropies: undefined }],
    }));
    const result = pairAdvantages(trajectories, config);
    const all = trajectories.map((_, i) => i);
    const samples = toTurnSamples(trajectories, result, all, { learningRate: 0 }, () => undefined) as TurnSample[];
    const totals = minibatchTotals(samples, samples.length, 1, 1);
    const optimizer = { learningRate: 0 } as never;
    const updater = new PolicyUpdater(policy.policy, {
      ...onlineDpo(config).microBatchLoss!,
      optimizer,
      microBatchTokens,
    });
    const inputs = (indices: readonly number[]) => {
      const own = indices.map((i) => samples[i]);
      return { ...tokenInputs(own, totals), ...pairInputs(own, totals) };
    };
    const options = { temperature: 1, random: new RandomStream(1), units: groupUnits(samples) };
    const { statistics } = await updater.gradients.compute(turns, inputs, options);
    return { statistics, metrics: result.metrics! };
  }

  it.each([0, 1, 2, 3])("has TRL's loss, gradients and metrics, in one micro-batch and in several (%i)", async (i) => {
    const { loss, metrics: expected } = fixture.cases[i];
    for (const microBatchTokens of [1, 1000]) {
      const { statistics, metrics } = await compute(i, microBatchTokens);
      expect(Math.abs(statistics.loss - loss)).toBeLessThan(1e-5 * Math.max(1, loss));
      expect(statistics.chosenReward).toBeCloseTo(expected["rewards/chosen"], 5);
      expect(statistics.rejectedReward).toBeCloseTo(expected["rewards/rejected"], 5);
      expect(statistics.accuracy).toBeCloseTo(expected["rewards/accuracies"], 5);
      expect(statistics.chosenLogProb).toBeCloseTo(expected["logps/chosen"], 4);
      expect(statistics.rejectedLogProb).toBeCloseTo(expected["logps/rejected"], 4);
      expect(metrics["objective/scores_margin"]).toBeCloseTo(expected["objective/scores_margin"], 5);
      const { parameters, runtime } = policy.causalLM;
      const file = await SafetensorsFile.open(`${fixtures}online-dpo/gradients.safetensors`);
      for (const name of parameters.names) {
        const { data } = await runtime.read(parameters.view(name, parameters.gradients));
        const gradient = await file.readFloat32(`${i}.${name}`);
        const scale = Math.max(1, ...gradient.map(Math.abs));
        gradient.forEach((value, k) => expect(Math.abs((data as Float32Array)[k] - value)).toBeLessThan(1e-5 * scale));
      }
      await file.close();
    }
  });
});
