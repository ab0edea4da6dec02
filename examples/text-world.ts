/**
 * A text adventure, in which earlier turns matter: `npm run example -- text-world [--episodes N]
 * [--model MODEL] [--device DEVICE]`. Prompts contain the whole episode, completions are
 * constrained to the admissible commands, and truncated episodes are bootstrapped from their last
 * observation.
 */
import "llamagym/text-world";
import { Agent, AutoModelForCausalLMWithValueHead, evaluate, make, ppo } from "llamagym";
import { parseOptions } from "./options.js";

type Info = Readonly<Record<string, unknown>>;

const getCommands = (info: Info) => info.admissibleCommands as string[];

class TextWorldAgent extends Agent<string, string> {
  override getSystemPrompt() {
    return "You are playing a text adventure. Answer with one of the commands that you can use. Do the task that the game sets.";
  }

  override formatObservation(observation: string, info: Info) {
    return `${observation.trim()}\n\nCommands that you can use: ${getCommands(info).join("; ")}.`;
  }

  override getChoices(_observation: string, info: Info) {
    return getCommands(info);
  }

  override extractAction(completion: string) {
    return completion;
  }
}

/**
 * Houses of one room, each with a task of two commands. Random commands do 60 % of the tasks within
 * 50 steps.
 */
const makeEnv = () =>
  make<string, string>("TextWorld-v0", { rooms: 1, objects: 5, questLength: 2, maxEpisodeSteps: 10 });

const { episodes, model: name, device, isEmbedded } = parseOptions({ episodes: 200 });
const model = await AutoModelForCausalLMWithValueHead.fromPretrained(name, { device });
const agent = new TextWorldAgent(model, model.tokenizer, {
  historyTurns: Infinity,
  algorithm: ppo({
    batchSize: 128,
    miniBatchSize: 64,
    learningRate: isEmbedded ? 1e-3 : 1e-4,
    initKlCoef: 0,
    advantageLevel: "turn",
    gamma: 0.95,
  }),
});

/** Fraction of tasks done, with commands sampled as in training. */
async function measure(): Promise<string> {
  const options = { episodes: Math.min(episodes, 64), mode: "train", seed: 1 } as const;
  const { meanReturn, standardError } = await evaluate(agent, makeEnv, options);
  return `${meanReturn.toFixed(3)} ± ${standardError.toFixed(3)}`;
}

console.log(`before: ${await measure()} of the tasks done`);
const env = makeEnv();
const returns: number[] = [];
for (let episode = 0; episode < episodes; episode++) {
  let { observation, info } = await env.reset(episode === 0 ? { seed: 2 } : {});
  let total = 0;
  let wasTruncated = false;
  for (let done = false; !done;) {
    const action = await agent.act(observation, info);
    const { reward, terminated, truncated, ...next } = await env.step(action);
    agent.assignReward(reward);
    total += reward;
    ({ observation, info } = next);
    wasTruncated = truncated && !terminated;
    done = terminated || truncated;
  }
  returns.push(total);
  // The value of the last observation replaces the rest of a truncated episode.
  const stats = await agent.terminateEpisode(wasTruncated ? { finalObservation: observation, info } : {});
  if (stats === undefined) continue;
  const recent = returns.slice(-100);
  const mean = recent.reduce((sum, value) => sum + value, 0) / recent.length;
  console.log(`episode ${episode + 1}: ${mean.toFixed(2)} of the tasks done`);
}
console.log(`after: ${await measure()} of the tasks done`);
await model.close();
