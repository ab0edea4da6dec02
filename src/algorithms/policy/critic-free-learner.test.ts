import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { Agent } from "../../agent/agent.js";
import { AutoModelForCausalLM, getPeftModel } from "../../generation/index.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { AlgorithmName, AlgorithmOptions } from "../table.js";

/** Two arms, of which one pays. */
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
  const base = await AutoModelForCausalLM.fromPretrained(files.folder, { device: "cpu", threads: 1 });
  const model = await getPeftModel(base, { r: 8, seed: 1 });
  models.push(model);
  return model;
}

const shared = { batchSize: 32, numGenerations: 8, learningRate: 0.02 };
const options: Readonly<Record<Exclude<AlgorithmName, "ppo">, AlgorithmOptions>> = {
  grpo: { grpo: { ...shared, beta: 0.01 } },
  rloo: { rloo: shared },
  reinforce: { reinforce: shared },
};

/** Plays one-turn episodes; gives the share of arm 1 among the last 100 pulls. */
async function pull(agent: BanditAgent, episodes: number, pays: (arm: number) => number): Promise<number> {
  const arms: number[] = [];
  for (let episode = 0; episode < episodes; episode++) {
    arms.push(await agent.act(episode % 16 < 8 ? "left" : "right"));
    agent.assignReward(pays(arms.at(-1)!));
    await agent.terminateEpisode();
  }
  return arms.slice(-100).filter((arm) => arm === 1).length / 100;
}

describe.each(Object.entries(options))("%s at work", (_, algorithm) => {
  it("learns which arm pays, and the other one when the sign is flipped", async () => {
    const train = async (sign: number) =>
      pull(new BanditAgent(await openModel(), undefined, { ...algorithm, seed: 3 }), 640, (arm) => sign * arm);
    expect(await train(1)).toBeGreaterThan(0.9);
    expect(await train(-1)).toBeLessThan(0.1);
  });
});
