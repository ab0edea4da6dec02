import { afterAll, describe, expect, it, vi } from "vitest";
import { setTrainedValues, TrainableModels } from "../../test/support/trainable.js";
import { decisionNodes } from "../algorithms/policy/decision-nodes.js";
import { TurnScorer } from "../algorithms/policy/scorer.js";
import { layRows } from "../algorithms/policy/rows.js";
import { choiceFeeds, decisionsOf, layTurns, sequencesOf } from "../algorithms/policy/turn-batch.js";
import type { LanguageModel } from "../generation/index.js";
import { add, reduceSum } from "../graph/index.js";
import type { PolicyNodes } from "../models/policy.js";
import { TrainingGraph } from "../models/training-graph.js";
import type { DecoderConfig } from "../nn/config.js";
import { Replier, type SampledReply } from "../rollout/replier.js";
import type { ReplyForm } from "../rollout/reply-form.js";
import type { Segment, Turn } from "../rollout/turn.js";
import { Agent } from "./agent.js";
import type { AgentOptions } from "./options.js";

const models = new TrainableModels();
afterAll(() => models.close());

const rowsOf = (turns: readonly Turn[], { hiddenSize }: DecoderConfig) =>
  layRows(turns.flatMap(sequencesOf), hiddenSize);

/** Says anything, or what it is held to. */
class Walker extends Agent<number, string> {
  form: ReplyForm | undefined;

  override getSystemPrompt() {
    return "Walk.";
  }

  override formatObservation(observation: number) {
    return `Step ${observation}`;
  }

  override getChoices() {
    return this.form !== undefined && "choices" in this.form ? this.form.choices : undefined;
  }

  override getPattern() {
    return this.form !== undefined && "regex" in this.form ? this.form.regex : undefined;
  }

  override getSchema() {
    return this.form !== undefined && "jsonSchema" in this.form ? this.form.jsonSchema : undefined;
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

interface Played {
  readonly model: LanguageModel;
  readonly segments: readonly Segment[];
  readonly replies: readonly SampledReply[];
}

/** Plays episodes of four turns; gives the replies as they were sampled, and what the learner was given to train. */
async function play(options: AgentOptions<number, string>, held: ReplyForm | undefined): Promise<Played> {
  const model = await models.open({ maxPositions: 512, scale: 0.2 });
  await setTrainedValues(model, (i) => 0.05 * Math.sin(7 * i));
  const agent = new Walker(model, undefined, { ppo: { batchSize: 12 }, seed: 5, ...options });
  agent.form = held;
  const drawn = vi.spyOn(Replier.prototype, "reply");
  const update = vi.spyOn(await agent.learner(), "update").mockResolvedValue({});
  for (let episode = 0; episode < 3; episode++) {
    for (let turn = 0; turn < 4; turn++) {
      await agent.act(turn);
      agent.assignReward(turn);
    }
    await agent.terminateEpisode();
  }
  const replies = await Promise.all(drawn.mock.results.map(({ value }) => value as Promise<SampledReply>));
  drawn.mockRestore();
  expect(update).toHaveBeenCalledOnce();
  return { model, segments: update.mock.calls[0][0], replies };
}

const cases = [
  ["free replies", {}, undefined],
  ["free replies at temperature 0.6", { generation: { temperature: 0.6 } }, undefined],
  ["replies held to choices", {}, choices],
  ["replies held to choices at temperature 1.7", { generation: { temperature: 1.7 } }, choices],
  ["actions scored by their sums", { actionScoring: "sum", generation: { temperature: 9 } }, choices],
  ["actions scored by their tokens", { actionScoring: "token", generation: { temperature: 2 } }, choices],
  ["actions scored by their words", { actionScoring: "word", generation: { temperature: 6 } }, choices],
  ["replies behind a prefix, each prompt alone", { historyTurns: 0, replyPrefix: "I" }, undefined],
  ["replies whose history is cut off", { historyTurns: 2 }, choices],
  ["replies held to a pattern", { generation: { maxNewTokens: 20 } }, pattern],
  ["replies held to a pattern at temperature 1.7", { generation: { maxNewTokens: 14, temperature: 1.7 } }, pattern],
  ["replies held to a JSON schema", { generation: { maxNewTokens: 30 }, historyTurns: 1 }, schema],
] as const;

describe.each(cases)("%s", (name, options, held) => {
  const { temperature = 1 } = "generation" in options ? (options.generation as { temperature?: number }) : {};
  let played: Played;
  let turns: readonly Turn[];

  it("are trained with exactly the tokens that were sampled", async () => {
    played = await play(
      {
        generation: { maxNewTokens: 5, ...("generation" in options ? options.generation : {}) },
        ...withoutGeneration(options),
      },
      held,
    );
    const { segments, replies } = played;
    expect(segments.map(({ turns: own, end }) => [own.length, end])).toEqual([1, 2, 3].map(() => [4, "terminated"]));
    turns = segments.flatMap((segment) => segment.turns);
    expect(turns.map(({ tokens, logProbs }) => ({ tokens, logProbs }))).toEqual(
      replies.map(({ tokens, logProbs }) => ({ tokens, logProbs })),
    );
    expect(new Set(turns.map(({ tokens }) => tokens.join())).size).toBeGreaterThan(2);
    for (const { reward } of turns) expect(turns.filter((turn) => turn.reward === reward)).toHaveLength(3);
  });

  it("have, where they were chosen, the log-probabilities of the sampler in the training graph", async () => {
    const { causalLM } = played.model;
    const batch = layTurns(turns, rowsOf(turns, causalLM.config), temperature);
    const objective = (policy: PolicyNodes) => {
      const { logProbs, values } = decisionNodes(policy);
      return { loss: reduceSum(add(logProbs, values!)), statistics: { logProbs } };
    };
    const graph = await TrainingGraph.create(causalLM, objective, { withSets: batch.hasSets });
    expect(batch.hasSets).toBe(/pattern|schema/.test(name));
    const { logProbs } = await graph.run(batch.tokens, choiceFeeds(batch));
    const sampled = turns.flatMap((turn) => decisionsOf(turn).map((token) => turn.logProbs[token]));
    expect(sampled.some((value) => value < -0.3)).toBe(true);
    expect(logProbs.data).toHaveLength(sampled.length);
    sampled.forEach((value, i) => expect(Math.abs(logProbs.data[i] - value)).toBeLessThan(1e-4));
    // What was no decision was certain.
    for (const turn of turns) {
      const decided = new Set(decisionsOf(turn));
      turn.logProbs.forEach((value, i) => expect(decided.has(i) || value === 0).toBe(true));
    }
    await graph.release();
  });

  it("have the same in the scoring graph, and the values of the sampler", async () => {
    const scorer = await TurnScorer.create(played.model.causalLM, { maxTokens: 200 });
    const { logProbs, values } = await scorer.score(turns, { temperature });
    turns.forEach((turn, i) =>
      decisionsOf(turn).forEach((token, j) => {
        expect(Math.abs(logProbs[i][j] - turn.logProbs[token])).toBeLessThan(1e-4);
        // The model is not asked for scored actions' states alone, nor where there is nothing to choose.
        const isKnown = turn.scored === undefined && turn.allowed?.[token].length !== 1;
        const difference = Math.abs(values![i][j] - (turn.values?.[token] ?? NaN));
        expect(difference < 1e-4).toBe(isKnown);
      }),
    );
    expect(new Set(values!.map(([first]) => first.toFixed(3))).size).toBeGreaterThan(1);
    await scorer.release();
  });

  it.runIf(!/history|alone|scored|schema/.test(name))("stand in one row for a whole conversation", () => {
    const { config } = played.model.causalLM;
    for (const { turns: own } of played.segments) {
      const { tokens, decisions } = layTurns(own, rowsOf(own, config));
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
