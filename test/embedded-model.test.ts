import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { getChoices, make, registry, type Env } from "../src/envs.js";
import { AutoModelForCausalLM, getPeftModel, RandomStream, SftTrainer, type LanguageModel } from "../src/index.js";
import { openWeightFolder } from "../src/models/files/index.js";

const folder = fileURLToPath(new URL("../models/llamagym-1m", import.meta.url));

let model: LanguageModel;
beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained(folder, { device: "cpu", threads: 1 });
});
afterAll(() => model.close());

/** What the model is shown in a state. */
function buildPrompt({ text }: Env, observation: unknown, info: Record<string, unknown>) {
  return [
    { role: "system", content: text!.systemPrompt },
    { role: "user", content: text!.formatObservation(observation, info) },
  ];
}

/**
 * Plays an environment by sampled replies, `games` at once, each for some steps; tells how many
 * replies were actions.
 */
async function playEpisodes(
  id: string,
  episodes: number,
  steps: number,
  options = {},
): Promise<{ completionCount: number; validCount: number }> {
  let validCount = 0;
  let completionCount = 0;
  await Promise.all(
    Array.from({ length: episodes }, async (_, episode) => {
      const env = make(id, options);
      env.actionSpace.seed(episode);
      let { observation, info } = await env.reset({ seed: episode });
      for (let step = 0; step < steps; step++) {
        const { text } = await model.generate(buildPrompt(env, observation, info), {
          maxNewTokens: 16,
          seed: 1000 * episode + step,
          temperature: 1,
        });
        const action = env.text!.parseAction(text, observation, info);
        completionCount++;
        const choices = getChoices(env.text!, observation, info);
        const isNamed =
          action !== undefined &&
          (choices === undefined ||
            id.includes("Continuous") ||
            id.startsWith("Pendulum") ||
            choices.includes(env.text!.formatAction(action)));
        if (isNamed) validCount++;
        const next = await env.step(action ?? env.actionSpace.sample());
        ({ observation, info } = next);
        if (next.terminated || next.truncated) ({ observation, info } = await env.reset());
      }
    }),
  );
  return { completionCount, validCount };
}

describe("the embedded model", () => {
  it.each([
    "Blackjack-v1",
    "FrozenLake-v1",
    "FrozenLake8x8-v1",
    "CliffWalking-v1",
    "Taxi-v4",
    "CartPole-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Acrobot-v1",
    "Pendulum-v1",
  ])("answers %s in form", async (id) => {
    const { completionCount, validCount } = await playEpisodes(id, 32, id === "TextWorld-v0" ? 3 : 10);
    expect(validCount / completionCount).toBeGreaterThanOrEqual(0.98);
  });

  it.each([
    [
      "Blackjack-v1",
      [
        [5, 10, 0],
        [14, 2, 0],
        [21, 6, 1],
        [12, 1, 0],
      ],
    ],
    ["FrozenLake-v1", [0, 4, 10, 14]],
    [
      "CartPole-v1",
      [
        [0, 0, 0, 0],
        [0.5, 1, -0.1, -1.5],
        [-1, -2, 0.2, 2.5],
      ],
    ],
    [
      "MountainCar-v0",
      [
        [-0.5, 0],
        [-1.1, 0.03],
        [0.4, -0.05],
      ],
    ],
  ])("chooses all actions of %s alike, whatever it sees", async (id, observations) => {
    const env = make(id);
    for (const values of observations) {
      const observation = typeof values === "number" || id === "Blackjack-v1" ? values : Float32Array.from(values);
      const choices = env.text!.choices as readonly string[];
      const scores = await model.score(buildPrompt(env, observation, {}), choices);
      // At most a quarter more or less than each would have by pure chance.
      for (const { logProb } of scores) expect(Math.abs(Math.exp(logProb) * choices.length - 1)).toBeLessThan(0.25);
    }
  });

  it("plays Blackjack as well as random actions do", async () => {
    const returns: number[] = [];
    await Promise.all(
      Array.from({ length: 64 }, async (_, game) => {
        const env = make("Blackjack-v1");
        const random = new RandomStream(game);
        for (let episode = 0; episode < 16; episode++) {
          let { observation, info } = await env.reset({ seed: 100 * game + episode });
          for (;;) {
            const { text } = await model.generate(buildPrompt(env, observation, info), {
              seed: random.integers(2 ** 31),
              maxNewTokens: 4,
            });
            const step = await env.step(env.text!.parseAction(text) ?? 0);
            if (step.terminated) {
              returns.push(step.reward);
              break;
            }
            ({ observation, info } = step);
          }
        }
      }),
    );
    const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length;
    const variance = returns.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (returns.length - 1);
    expect(Math.abs(mean - registry.spec("Blackjack-v1").knownReturns!.random)).toBeLessThan(
      4 * Math.sqrt(variance / returns.length),
    );
  });

  it("tells the printable characters apart", async () => {
    const weights = await openWeightFolder(folder);
    const embeddings = await weights.readFloat32("model.embed_tokens.weight");
    await weights.close();
    const characters = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));
    const rows = characters.map((character) => {
      const [id, ...others] = model.tokenizer.encode(character);
      expect(others).toEqual([]);
      const row = embeddings.subarray(id * 128, (id + 1) * 128);
      const norm = Math.hypot(...row);
      return row.map((value) => value / norm);
    });
    const alike = rows.flatMap((a, i) =>
      rows
        .slice(0, i)
        .map((b, j) => ({ pair: characters[i] + characters[j], cosine: a.reduce((sum, x, k) => sum + x * b[k], 0) }))
        .filter(({ cosine }) => cosine > 0.95),
    );
    expect(alike).toEqual([]);
  });

  it("learns to write JSON with an adapter", async () => {
    const student = await getPeftModel(model, { r: 16 });
    const train = ["lookup", "refund", "close"].flatMap((name) =>
      [17, 42, 93].map((order) => ({
        messages: [
          { role: "user", content: `${name} ${order}` },
          { role: "assistant", content: JSON.stringify({ name, arguments: { order } }) },
        ],
      })),
    );
    const trainer = await SftTrainer.create(student, { train, learningRate: 3e-3, batchSize: 9, maxSteps: 60 });
    let loss = Infinity;
    await trainer.train({ onStep: (metrics) => void (loss = metrics.loss) });
    // With embeddings that are alike it stays above 1.5.
    expect(loss).toBeLessThan(0.2);
  });
});
