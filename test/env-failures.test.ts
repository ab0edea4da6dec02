import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentEpisodePlayer } from "../src/app/cli/interactive/agent-episode-player.js";
import { InteractiveEpisode } from "../src/app/cli/interactive/interactive-episode.js";
import { PlaySession } from "../src/app/dashboard/play-session.js";
import { randomPolicy, recordDemonstrations } from "../src/app/runs/record-demonstrations.js";
import { Discrete, Env, type ResetResult, type StepResult } from "../src/envs.js";
import type { LanguageModel } from "../src/generation/index.js";
import { TextAgent } from "../src/rl/agent/text-agent.js";
import { evaluate } from "../src/rl/train/evaluate.js";
import { Trainer } from "../src/rl/train/trainer.js";
import { ppo } from "../src/rl/algorithms/index.js";
import { TrainableModels } from "./support/trainable.js";

const methods = ["reset", "step", "render"] as const;
type Method = (typeof methods)[number];

/** An environment of one choice, one of whose methods fails. */
class FailingEnv extends Env<number, number> {
  override readonly observationSpace = new Discrete(1);
  override readonly actionSpace = new Discrete(1);
  override readonly metadata = { renderModes: ["ansi" as const] };
  override readonly text = {
    systemPrompt: "Go.",
    formatObservation: () => "now",
    parseAction: () => 0,
    formatAction: () => "go",
    choices: () => ["go"],
  };
  isClosed = false;

  constructor(private readonly failures: Partial<Record<Method, () => unknown>>) {
    super();
  }

  override reset() {
    return (this.failures.reset?.() ?? { observation: 0, info: {} }) as ResetResult<number>;
  }

  override step() {
    const result = { observation: 0, reward: 1, terminated: false, truncated: false, info: {} };
    return (this.failures.step?.() ?? result) as StepResult<number>;
  }

  override render() {
    return (this.failures.render?.() ?? "here") as string;
  }

  override close() {
    this.isClosed = true;
  }
}

const models = new TrainableModels();
let model: LanguageModel;
beforeAll(async () => void (model = await models.open({ maxPositions: 512 })));
afterAll(() => models.close());

const createAgent = () => {
  const algorithm = ppo({ batchSize: 4, miniBatchSize: 4, numPpoEpochs: 1 });
  const options = { actionMode: "choices" as const, callTimeoutSeconds: 0.05, historyTurns: 0, algorithm };
  return new TextAgent(model, new FailingEnv({}).text, options);
};

const print = () => {};
const output = { showText: false, print, printRendering: print, info: print };

/** All that runs episodes, given how an environment is made. */
const programs: Record<string, (makeEnv: () => FailingEnv) => Promise<unknown>> = {
  training: (env) => new Trainer({ agent: createAgent(), env, numEnvs: 1, turns: 8 }).train(),
  evaluation: (makeEnv) => evaluate(createAgent(), makeEnv, { episodes: 1 }),
  demonstrations: (makeEnv) =>
    recordDemonstrations(makeEnv, randomPolicy, { episodes: 1, settings: { callTimeoutSeconds: 0.05 } }),
  "play with an agent": (makeEnv) =>
    new AgentEpisodePlayer(makeEnv(), createAgent(), { ...output, episodes: 1, mode: "train", seed: 1 }).run(),
  "play at the keyboard": async (makeEnv) => {
    const episode = new InteractiveEpisode(makeEnv(), { ...output, settings: { callTimeoutSeconds: 0.05 } });
    await episode.reset(1);
    await episode.handleLine("go");
  },
  "play in the dashboard": async (makeEnv) => {
    const envs = { make: async () => makeEnv(), close: async () => {} };
    const player = { agent: createAgent(), env: "Failing-v0", checkpoint: "adapter", envs };
    const session = new PlaySession("1", player);
    try {
      await session.reset(1);
      await session.step({});
    } finally {
      await session.close();
    }
  },
};

describe.each(Object.keys(programs))("%s", (name) => {
  const run = (failures: ConstructorParameters<typeof FailingEnv>[0]) => programs[name](() => new FailingEnv(failures));

  it.each(["reset", "step"] as const)("ends with ENV_FAILED when %s never returns", async (method) => {
    await expect(run({ [method]: () => new Promise(() => {}) })).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringMatching(
        `^\`${method}\` of <FailingEnv>( \\(environment 0\\))? did not settle within 0.05 s. Resolve its promise`,
      ) as string,
    });
  });

  it.each(["reset", "step"] as const)("ends with ENV_FAILED when %s throws", async (method) => {
    const failure = () => {
      throw new Error("no fuel");
    };
    await expect(run({ [method]: failure })).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: `<FailingEnv> threw in ${method}: no fuel`,
    });
  });

  it.each([
    ["reset", { info: {} }, "returned an object without an observation from reset"],
    ["reset", { observation: Number.NaN, info: {} }, "returned an observation with NaN"],
    ["step", { observation: 0, reward: "1", terminated: false, truncated: false }, "returned the reward 1 (string)"],
    ["step", { observation: 0, reward: 1, terminated: 1, truncated: false }, "no booleans for terminated"],
  ])("ends with ENV_FAILED when %s returns %j", async (method, result, message) => {
    await expect(run({ [method]: () => result })).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringContaining(`<FailingEnv> ${message.replace(/^no/, "returned no")}`) as string,
    });
  });
});

describe("an environment that does not render", () => {
  const render = () => new Promise<string>(() => {});

  it.each(["play with an agent", "play at the keyboard", "play in the dashboard"])("ends %s", async (name) => {
    await expect(programs[name](() => new FailingEnv({ render }))).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringContaining("`render` of <FailingEnv> did not settle within 0.05 s") as string,
    });
  });

  it("still trains", async () => {
    const trainer = new Trainer({ agent: createAgent(), env: () => new FailingEnv({ render }), numEnvs: 1, turns: 4 });
    expect((await trainer.train()).state.turns).toBe(4);
  });
});
