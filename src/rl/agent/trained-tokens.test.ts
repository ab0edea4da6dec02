import { afterAll, describe, expect, it, vi } from "vitest";
import { ppo } from "../algorithms/index.js";
import { setTrainedValues, TrainableModels } from "../../../test/support/trainable.js";
import { constrainedPolicyNodes } from "../algorithms/update/constrained-policy-nodes.js";
import { LogProbScorer } from "../algorithms/update/log-prob-scorer.js";
import { layOutSequences } from "../../models/graphs/prefix-layout.js";
import {
  constraintFeeds,
  decisionIndices,
  buildTurnBatch,
  decisionSequences,
} from "../algorithms/update/turn-batch.js";
import type { LanguageModel } from "../../generation/index.js";
import { add, reduceSum } from "../../engine/graph/index.js";
import type { PolicyNodes } from "../../models/graphs/policy-nodes.js";
import { TrainingGraph } from "../../models/graphs/training-graph.js";
import type { DecoderConfig } from "../../engine/nn/decoder-config.js";
import { CompletionSampler, type TurnCompletion } from "../rollout/completion-sampler.js";
import type { OutputConstraint } from "../../generation/constraints/output-constraint.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import { TurnSftLearner } from "../algorithms/sft/turn-sft-learner.js";
import { toReplayTurn, toTurnTokens, type ReplayTurn } from "./demonstrations/replay-buffer.js";
import { Agent } from "./agent.js";
import type { AgentOptions } from "./agent-options.js";

const models = new TrainableModels();
afterAll(() => models.close());

const packTurns = (turns: readonly Turn[], { hiddenSize }: DecoderConfig) =>
  layOutSequences(turns.flatMap(decisionSequences), { hiddenSize });

/** An agent with free or constrained completions. */
class Walker extends Agent<number, string> {
  constraint: OutputConstraint | undefined;

  override getSystemPrompt() {
    return "Walk.";
  }

  override formatObservation(observation: number) {
    return `Step ${observation}`;
  }

  override getChoices() {
    return this.constraint !== undefined && "choices" in this.constraint ? this.constraint.choices : undefined;
  }

  override getPattern() {
    return this.constraint !== undefined && "regex" in this.constraint ? this.constraint.regex : undefined;
  }

  override getSchema() {
    return this.constraint !== undefined && "jsonSchema" in this.constraint ? this.constraint.jsonSchema : undefined;
  }

  override extractAction(response: string) {
    return response;
  }
}

const choices = { choices: ["go left", "go right", "go", "stay here"] };
/** Few tokens at first, then many, then one, then two. */
const pattern = { regex: /(go|stay) [a-z ]{1,9}: now[.!]/ };
const schema = {
  jsonSchema: {
    type: "object",
    properties: { why: { type: "string", maxLength: 6 }, action: { enum: ["go", "stay"] } },
    required: ["action"],
  },
};

interface SampledEpisodes {
  readonly model: LanguageModel;
  readonly trajectories: readonly Trajectory[];
  readonly completions: readonly TurnCompletion[];
}

/**
 * Plays episodes of four turns; gives the replies as they were sampled, and what the learner was
 * given to train.
 */
async function sampleEpisodes(
  options: AgentOptions<number, string>,
  constraint: OutputConstraint | undefined,
): Promise<SampledEpisodes> {
  const model = await models.open({ maxPositions: 512, scale: 0.2 });
  await setTrainedValues(model, (i) => 0.05 * Math.sin(7 * i));
  const agent = new Walker(model, undefined, { algorithm: ppo({ batchSize: 12 }), seed: 5, ...options });
  agent.constraint = constraint;
  const sampleSpy = vi.spyOn(CompletionSampler.prototype, "sample");
  const learner = await agent.getLearner();
  const prepare = vi.spyOn(learner, "prepare").mockResolvedValue({});
  vi.spyOn(learner, "update").mockResolvedValue({});
  for (let episode = 0; episode < 3; episode++) {
    for (let turn = 0; turn < 4; turn++) {
      await agent.act(turn);
      agent.assignReward(turn);
    }
    await agent.terminateEpisode();
  }
  const completions = await Promise.all(sampleSpy.mock.results.map(({ value }) => value as Promise<TurnCompletion>));
  sampleSpy.mockRestore();
  expect(prepare).toHaveBeenCalledOnce();
  return { model, trajectories: prepare.mock.calls[0][0], completions };
}

const cases = [
  ["free completions", {}, undefined],
  ["free completions at temperature 0.6", { generation: { temperature: 0.6 } }, undefined],
  ["completions constrained to choices", {}, choices],
  ["completions constrained to choices at temperature 1.7", { generation: { temperature: 1.7 } }, choices],
  ["actions scored by their sums", { actionScoring: "sum", generation: { temperature: 9 } }, choices],
  ["actions scored by their tokens", { actionScoring: "token", generation: { temperature: 2 } }, choices],
  ["actions scored by their words", { actionScoring: "word", generation: { temperature: 6 } }, choices],
  ["replies behind a prefix, each prompt alone", { historyTurns: 0, completionPrefix: "I" }, undefined],
  ["replies whose history is cut off", { historyTurns: 2 }, choices],
  ["completions constrained to a pattern", { generation: { maxNewTokens: 20 } }, pattern],
  [
    "completions constrained to a pattern at temperature 1.7",
    { generation: { maxNewTokens: 14, temperature: 1.7 } },
    pattern,
  ],
  ["completions constrained to a JSON schema", { generation: { maxNewTokens: 30 }, historyTurns: 1 }, schema],
] as const;

describe.each(cases)("%s", (name, options, held) => {
  const { temperature = 1 } = "generation" in options ? (options.generation as { temperature?: number }) : {};
  let played: SampledEpisodes;
  let turns: readonly Turn[];

  it("are trained with exactly the tokens that were sampled", async () => {
    played = await sampleEpisodes(
      {
        historyTurns: Infinity,
        generation: { maxNewTokens: 5, ...("generation" in options ? options.generation : {}) },
        ...withoutGeneration(options),
      },
      held,
    );
    const { trajectories, completions } = played;
    expect(trajectories.map(({ turns: own, end }) => [own.length, end])).toEqual(
      [1, 2, 3].map(() => [4, "terminated"]),
    );
    turns = trajectories.flatMap((segment) => segment.turns);
    expect(turns.map(({ tokens, logProbs }) => ({ tokens, logProbs }))).toEqual(
      completions.map(({ tokens, logProbs }) => ({ tokens, logProbs })),
    );
    expect(new Set(turns.map(({ tokens }) => tokens.join())).size).toBeGreaterThan(1);
    for (const { reward } of turns) expect(turns.filter((turn) => turn.reward === reward)).toHaveLength(3);
  });

  it("have, where they were chosen, the log-probabilities of the sampler in the training graph", async () => {
    const { causalLM } = played.model;
    const batch = buildTurnBatch(turns, packTurns(turns, causalLM.config), temperature);
    const objective = (policy: PolicyNodes) => {
      const { logProbs, values } = constrainedPolicyNodes(policy);
      return { loss: reduceSum(add(logProbs, values!)), statistics: { logProbs } };
    };
    const graph = await TrainingGraph.create(causalLM, objective, { withAllowedTokens: batch.hasAllowedTokens });
    expect(batch.hasAllowedTokens).toBe(/pattern|schema/.test(name));
    const { logProbs } = await graph.run(batch.tokens, constraintFeeds(batch));
    const sampled = turns.flatMap((turn) => decisionIndices(turn).map((token) => turn.logProbs[token]));
    expect(sampled.some((value) => value < -0.3)).toBe(true);
    expect(logProbs.data).toHaveLength(sampled.length);
    sampled.forEach((value, i) => expect(Math.abs(logProbs.data[i] - value)).toBeLessThan(1e-4));
    // What was no decision was certain.
    for (const turn of turns) {
      const decided = new Set(decisionIndices(turn));
      turn.logProbs.forEach((value, i) => expect(decided.has(i) || value === 0).toBe(true));
    }
    await graph.release();
  });

  it("have them as the loss of imitating them, among up to 16 tokens", async () => {
    const { model } = played;
    const learner = await TurnSftLearner.create(model, { learningRate: 0, temperature });
    const replayed = JSON.parse(JSON.stringify(turns.map(toReplayTurn))) as ReplayTurn[];
    const { loss } = await learner.update(replayed.map(toTurnTokens));
    const scorer = new LogProbScorer(model.policy, { microBatchTokens: 200 });
    const free = await scorer.score(
      turns.map((turn) => ({ ...turn, allowedTokens: undefined })),
      { temperature },
    );
    const expected = turns.flatMap((turn, i) =>
      decisionIndices(turn).map((token) =>
        (turn.allowedTokens?.[token]?.length ?? 0) > 16 ? free.logProbs[i][token] : turn.logProbs[token],
      ),
    );
    expect(loss).toBeCloseTo(-expected.reduce((sum, value) => sum + value, 0) / expected.length, 4);
    await scorer.release();
    await learner.release();
  });

  it("have the same in the scoring graph, and the values of the sampler", async () => {
    const scorer = new LogProbScorer(played.model.policy, { microBatchTokens: 200 });
    const { logProbs, values } = await scorer.score(turns, { temperature });
    turns.forEach((turn, i) =>
      decisionIndices(turn).forEach((token, j) => {
        expect(Math.abs(logProbs[i][j] - turn.logProbs[token])).toBeLessThan(1e-4);
        // The model is not asked for scored actions' states alone, nor where there is nothing to
        // choose.
        const isKnown = turn.actionCandidates === undefined && turn.allowedTokens?.[token]?.length !== 1;
        const difference = Math.abs(values![i][j] - (turn.values?.[token] ?? NaN));
        expect(difference < 1e-4).toBe(isKnown);
      }),
    );
    expect(new Set(values!.map(([first]) => first.toFixed(3))).size).toBeGreaterThan(1);
    await scorer.release();
  });

  it.runIf(!/history|alone|scored|schema/.test(name))("stand in one row for a whole conversation", () => {
    const { config } = played.model.causalLM;
    for (const { turns: own } of played.trajectories) {
      const { tokens, decisions } = buildTurnBatch(own, packTurns(own, config));
      const [{ prefix, rows }, ...others] = tokens.groups;
      expect(others).toEqual([]);
      expect(rows).toHaveLength(1);
      const row = [...prefix, ...rows[0]];
      own.forEach((turn, number) => {
        expect(row.slice(0, turn.prompt.length)).toEqual(turn.prompt);
        for (const { token } of decisions.filter((decision) => decision.turn === number).slice(0, -1))
          expect(row[turn.prompt.length + token]).toBe(turn.tokens[token]);
      });
    }
  });
});

function withoutGeneration<Options extends object>(options: Options): Omit<Options, "generation"> {
  const { generation: _, ...rest } = options as Options & { generation?: unknown };
  return rest;
}
