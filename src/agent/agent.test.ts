import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../test/support/random-model.js";
import { AutoModelForCausalLMWithValueHead } from "../generation/index.js";
import type { LanguageModel } from "../generation/language-model.js";
import { Agent } from "./agent.js";
import type { AgentOptions } from "./options.js";

/** Two arms; the right one pays what it is told to. */
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

let files: Awaited<ReturnType<typeof writeRandomModel>>;
const models: LanguageModel[] = [];

beforeAll(async () => {
  files = await writeRandomModel({ scale: 0.1 });
});

afterAll(async () => {
  for (const model of models) await model.close();
  await files.remove();
});

async function openModel(): Promise<LanguageModel> {
  const model = await AutoModelForCausalLMWithValueHead.fromPretrained(files.folder, { device: "cpu" });
  models.push(model);
  return model;
}

const options: AgentOptions<string, number> = {
  ppo: { batchSize: 32, miniBatchSize: 32, learningRate: 0.02, initKlCoef: 0, numPpoEpochs: 2 },
  seed: 3,
};

/** Plays one-turn episodes; gives the share of arm 1 among the last 100 pulls. */
async function pull(agent: BanditAgent, episodes: number, pays: (arm: number, context: string) => number) {
  const right: boolean[] = [];
  for (let episode = 0; episode < episodes; episode++) {
    const context = episode % 2 === 0 ? "left" : "right";
    const arm = await agent.act(context);
    agent.assignReward(pays(arm, context));
    right.push(arm === 1);
    await agent.terminateEpisode();
  }
  return right.slice(-100).filter(Boolean).length / 100;
}

describe("Agent", () => {
  it("learns which arm pays", async () => {
    const agent = new BanditAgent(await openModel(), undefined, options);
    const share = await pull(agent, 600, (arm) => arm);
    expect(share).toBeGreaterThan(0.9);
  });
});
