import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { makeTrainable } from "../../models/adapters/get-peft-model.js";
import { SafetensorsFile } from "../../models/files/index.js";
import { readJson } from "../../core/files/json-file.js";
import { TrainableModels } from "../../../test/support/trainable.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import type { TurnSample } from "./algorithm-definition.js";
import type { PolicyLearner } from "./policy-learner.js";
import { reinforce } from "./reinforce/reinforce.js";
import type { Distillation } from "./learner.js";
import { createDistillation, createHintInserter } from "./teacher.js";

const fixtures = fileURLToPath(new URL("../../../test/fixtures/", import.meta.url));

/** Numbers that PyTorch computed; generate.py next to them. */
interface Fixture {
  readonly temperature: number;
  readonly turns: readonly Pick<Turn, "prompt" | "tokens">[];
  readonly studentLogProbs: readonly number[][];
  readonly teacherLogProbs: readonly number[][];
  readonly loss: number;
}

const models = new TrainableModels();
let fixture: Fixture;
let student: LanguageModel;
let teacher: LanguageModel;
beforeAll(async () => {
  fixture = (await readJson(`${fixtures}distillation/distillation.json`)) as unknown as Fixture;
  const open = async (name: string) =>
    AutoModelForCausalLM.fromPretrained(`${fixtures}preferences/${name}`, { device: "cpu", threads: 1 });
  const base = await open("policy");
  teacher = await open("reference");
  models.track(base);
  models.track(teacher);
  student = base.withCausalLM(await makeTrainable(base.causalLM, /layers/));
});
afterAll(() => models.close());

/** One trajectory per turn, with rewards 1, 2, ... */
function toTrajectories({ turns, studentLogProbs }: Fixture): Trajectory[] {
  return turns.map(({ prompt, tokens }, i) => ({
    end: "terminated",
    bootstrapPrompt: undefined,
    turns: [
      {
        prompt,
        tokens,
        logProbs: studentLogProbs[i],
        allowedTokens: undefined,
        text: "",
        finishReason: "stop",
        isValid: true,
        attempts: 1,
        penalty: 0,
        reward: i + 1,
      },
    ],
  }));
}

interface Prepared {
  readonly turns: readonly TurnSample[];
}

async function prepare(created: Promise<Distillation> | undefined, trajectories = toTrajectories(fixture)) {
  const distillation = await created;
  const algorithm = reinforce({ numGenerations: 1, batchSize: 3, klCoef: 0 });
  const learner = (await algorithm.create(student, {
    temperature: fixture.temperature,
    isTruncatedSampling: false,
    microBatchTokens: 16,
    random: new RandomStream(1),
    distillation,
  })) as unknown as PolicyLearner<object, never, unknown>;
  const prepared = (await learner.prepare(trajectories)) as unknown as Prepared & {
    readonly result: { readonly metrics: Readonly<Record<string, number>> };
  };
  return { learner, prepared, advantages: prepared.turns.flatMap(({ advantages }) => Array.from(advantages)) };
}

const context = () => ({
  student,
  microBatchTokens: 16,
  toTeacherPrompt: ({ prompt }: Turn) => prompt,
});

/** PyTorch's log π_teacher - log π of all tokens, less their mean, and the estimated divergence. */
function divergences() {
  const [own, theirs] = [flat(fixture.studentLogProbs), flat(fixture.teacherLogProbs)];
  const kl = own.reduce((sum, logProb, i) => sum + logProb - theirs[i], 0) / own.length;
  return { kl, centered: theirs.map((logProb, i) => logProb - own[i] + kl) };
}

const flat = (rows: readonly (readonly number[])[]) => rows.flat();

describe("on-policy distillation", () => {
  it("has PyTorch's loss and gradient of the reverse KL divergence on sampled tokens", async () => {
    const { learner, prepared, advantages } = await prepare(
      createDistillation({ model: teacher, rewardCoef: 0 }, context()),
    );
    const { centered, kl } = divergences();
    advantages.forEach((advantage, i) => expect(advantage).toBeCloseTo(centered[i], 5));
    const { loss } = await learner.computeGradients(prepared.turns);
    expect(loss).toBeCloseTo(fixture.loss, 5);
    const { parameters, runtime } = student.causalLM;
    const file = await SafetensorsFile.open(`${fixtures}distillation/gradients.safetensors`);
    for (const name of parameters.names) {
      const { data } = await runtime.read(parameters.view(name, parameters.gradients));
      const gradient = await file.readFloat32(name);
      gradient.forEach((value, i) => expect(Math.abs((data as Float32Array)[i] - value)).toBeLessThan(1e-5));
      expect(Math.max(...gradient.map(Math.abs))).toBeGreaterThan(1e-4);
    }
    await file.close();
    expect(prepared.result.metrics["teacher/kl"]).toBeCloseTo(kl, 5);
  });

  it("mixes the divergence with rewards by coefficients", async () => {
    const { advantages: ofRewards } = await prepare(undefined);
    const { advantages } = await prepare(createDistillation({ model: teacher, coef: 0.3, rewardCoef: 0.5 }, context()));
    const { centered } = divergences();
    advantages.forEach((advantage, i) => expect(advantage).toBeCloseTo(0.5 * ofRewards[i] + 0.3 * centered[i], 5));
  });

  it("subtracts the divergence among alternatives from their log-ratios", async () => {
    const { prompt } = fixture.turns[0];
    const sequences = [[47], [37], [63, 108]];
    const actionCandidates = { sequences, weights: [4, 4, 2] };
    const logProbsOf = async (model: LanguageModel) => {
      const scores = await model.score(prompt, sequences);
      const weighted = scores.map(({ logProb }, i) => actionCandidates.weights[i] * logProb);
      const logNormalizer = Math.log(weighted.reduce((sum, score) => sum + Math.exp(score), 0));
      return weighted.map((score) => score - logNormalizer);
    };
    const [own, theirs] = [await logProbsOf(student), await logProbsOf(teacher)];
    const kl = own.reduce((sum, logProb, i) => sum + Math.exp(logProb) * (logProb - theirs[i]), 0);
    const [trajectory] = toTrajectories(fixture);
    const turnOf = (chosen: number) => ({
      ...trajectory.turns[0],
      tokens: sequences[chosen],
      logProbs: [own[chosen]],
      actionCandidates: { ...actionCandidates, chosen },
    });
    const { advantages, prepared } = await prepare(
      createDistillation({ model: teacher, rewardCoef: 0 }, context()),
      sequences.map((_, chosen) => ({ ...trajectory, turns: [turnOf(chosen)] })),
    );
    expect(kl).toBeGreaterThan(0.01);
    advantages.forEach((advantage, i) => expect(advantage).toBeCloseTo(theirs[i] - own[i] + kl, 4));
    expect(prepared.result.metrics["teacher/kl"]).toBeCloseTo(kl, 4);
  });

  it("trains groups of equal rewards, whose rewards have no signal", async () => {
    const { learner, prepared } = await prepare(createDistillation({ model: teacher }, context()));
    const spec = learner.rolloutSpec;
    expect(spec.kind === "groups" && (await spec.hasSignal(toTrajectories(fixture).slice(0, 1)))).toBe(true);
    expect(prepared.turns).toHaveLength(3);
  });

  it("accepts a teacher whose matrices have rows behind the last token", async () => {
    const padded = await models.open({ config: { vocab_size: 330 } });
    const created = createDistillation({ model: padded }, { ...context(), student: await models.open() });
    await expect(created).resolves.toMatchObject({ coef: 1 });
  });

  it("refuses a teacher with another tokenizer, and weights below 0", async () => {
    const other = await AutoModelForCausalLM.fromPretrained("embedded", { device: "cpu", threads: 1 });
    models.track(other);
    const create = async (options: object) => createDistillation({ model: teacher, ...options }, context());
    await expect(create({ model: other })).rejects.toThrow(/it has 1280 tokens instead of 320/);
    const withTokens = { ...context(), student: await models.open() };
    await expect(createDistillation({ model: other }, withTokens)).rejects.toThrow(
      /token \d+ is ".*" instead of ".*"\..*llamagym sft/,
    );
    await expect(create({ coef: -1 })).rejects.toThrow(/`teacher\.coef` must be a number >= 0, got -1/);
    const scores = { score: async () => [], release: async () => {} };
    await expect(create({ model: scores, hint: "x" })).rejects.toThrow(/needs a model/);
    await expect(create({ coef: "1" })).rejects.toThrow(/`teacher\.coef` must be a number >= 0, got "1"/);
    await expect(create({ hint: 3 })).rejects.toThrow(/`teacher\.hint` must be a text, got 3/);
    await expect(create({ hints: "x" })).rejects.toThrow(/`teacher` has no option "hints"\. Did you mean hint/);
    for (const model of [undefined, "gpt", {}, 3])
      await expect(create({ model })).rejects.toThrow(/`teacher\.model` must be an open model, "self", the server/);
    const server = { baseURL: "http://127.0.0.1:1", key: "x" };
    await expect(create({ model: server })).rejects.toThrow(/`teacher\.model` has no option "key"/);
  });
});

const render = (model: LanguageModel) => (systemPrompt: string | undefined, observation: string) =>
  model.tokenizer.encode(
    model.tokenizer.applyChatTemplate(
      [
        ...(systemPrompt === undefined ? [] : [{ role: "system", content: systemPrompt }]),
        { role: "user", content: observation },
      ],
      { addGenerationPrompt: true },
    ),
    { addSpecialTokens: false },
  );

describe("hints of a teacher", () => {
  const system = "Play.";
  const create = async (hint?: string) => {
    const model = await models.open({ maxPositions: 512 });
    const rendered = render(model);
    const options = hint === undefined ? {} : { hint };
    const insertHints = createHintInserter({ systemPrompt: system, render: rendered }, hint);
    const created = await createDistillation(
      { model: "self", ...options },
      {
        ...context(),
        student: model,
        toTeacherPrompt: ({ prompt, teacherHint }) => insertHints(prompt, teacherHint),
      },
    );
    const turn = (prompt: readonly number[], teacherHint?: string): Turn => ({
      ...toTrajectories(fixture)[0].turns[0],
      prompt,
      ...(teacherHint === undefined ? {} : { teacherHint }),
    });
    const score = async (...turns: Turn[]) =>
      (await created.teacher.score(turns, 1)).logProbs.map((logProbs) => Array.from(logProbs));
    return { rendered, turn, score };
  };

  it("follow the observation of their turn; that of all turns follows the system prompt", async () => {
    const { rendered, turn, score } = await create("Rules.");
    const prompt = rendered(system, "Go");
    const scores = await score(turn(prompt, "Hit now."), turn(prompt), turn(prompt, "Stay."));
    const { score: scorePlain } = await create();
    const expected = ["Go\n\nHit now.", "Go", "Go\n\nStay."];
    for (const [i, text] of expected.entries()) {
      const whole = rendered(`${system}\n\nRules.`, text);
      const [alone] = await scorePlain(turn(whole), { ...turn(prompt), teacherHint: "?" });
      scores[i].forEach((logProb, t) => expect(logProb).toBeCloseTo(alone[t], 5));
    }
    expect(scores[0]).not.toEqual(scores[2]);
  });

  it("are needed by the teacher self, in one turn of the first batch", async () => {
    const { rendered, turn, score } = await create();
    const prompt = rendered(system, "Go");
    await expect(score(turn(prompt), turn(prompt, ""))).rejects.toThrow(/needs hints.*`info\.hint`/);
    await expect(score(turn(prompt), turn(prompt, "Stay."))).resolves.toHaveLength(2);
    await expect(score(turn(prompt))).resolves.toHaveLength(1);
  });

  it("must leave the turn in the context", async () => {
    const { rendered, turn, score } = await create("Hit below 17. ".repeat(60));
    await expect(score(turn(rendered(system, "Go")))).rejects.toThrow(/CONTEXT_OVERFLOW|has 512 tokens, but a turn/);
  });
});

describe("createHintInserter", () => {
  it.each([undefined, "Play well."])("renders the prompt of texts with the hints (%s)", async (systemPrompt) => {
    const rendered = render(await models.open());
    const insert = (prompt: readonly number[], system?: string, turn?: string) =>
      createHintInserter({ render: rendered, systemPrompt }, system)(prompt, turn);
    const hinted = systemPrompt === undefined ? "Hit below 17." : `${systemPrompt}\n\nHit below 17.`;
    const prompt = rendered(systemPrompt, "You have 12");
    expect(insert(prompt)).toEqual(prompt);
    expect(insert(prompt, "Hit below 17.")).toEqual(rendered(hinted, "You have 12"));
    expect(insert(prompt, "", "Hit now.")).toEqual(rendered(systemPrompt, "You have 12\n\nHit now."));
    expect(insert(prompt, "Hit below 17.", "Hit now.")).toEqual(rendered(hinted, "You have 12\n\nHit now."));
    expect(() => insert([9, 9], "a")).toThrow(/does not begin with the system prompt/);
    expect(() => insert([9, 9], undefined, "a")).toThrow(/does not end with an observation/);
  });
});
