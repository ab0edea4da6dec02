/**
 * Your own agent and the usual Gym loop: `npm run example -- blackjack [--episodes N] [--model
 * MODEL] [--device DEVICE]`. The loop steps one environment; examples/parallel.ts steps many at
 * once, which is faster.
 */
import { Agent, AutoModelForCausalLMWithValueHead, evaluate, make, ppo } from "llamagym";
import { parseOptions } from "./options.js";

type Observation = readonly [sum: number, dealer: number, usableAce: number];

class BlackjackAgent extends Agent<Observation, number> {
  override getSystemPrompt() {
    return "You are an expert blackjack player. Answer hit to take another card or stay to stop.";
  }

  override formatObservation([sum, dealer, ace]: Observation) {
    return `Your current total is ${sum}. The dealer shows ${dealer}. You have ${ace === 1 ? "a" : "no"} usable ace. hit or stay?`;
  }

  override getChoices() {
    return ["stay", "hit"]; // completions are constrained to these; leave it out for free completions
  }

  override extractAction(completion: string) {
    return completion === "stay" ? 0 : 1;
  }
}

const { episodes, model: name, device, isEmbedded } = parseOptions({ episodes: 20_000 });
const model = await AutoModelForCausalLMWithValueHead.fromPretrained(name, { device });
const shared = { initKlCoef: 0, advantageLevel: "turn", vfCoef: 0.5, maxGradNorm: 0.5 } as const;
const agent = new BlackjackAgent(model, model.tokenizer, {
  seed: 1,
  historyTurns: 0, // each hand is decided by the current observation
  algorithm: ppo(
    isEmbedded
      ? { ...shared, batchSize: 2048, miniBatchSize: 512, numPpoEpochs: 8, learningRate: 3e-3, entropyCoef: 0.05 }
      : { ...shared, batchSize: 256, miniBatchSize: 64, numPpoEpochs: 3, learningRate: 1e-4 },
  ),
});
const env = make<Observation, number>("Blackjack-v1");

const returns: number[] = [];
let updates = 0;
for (let episode = 0; episode < episodes; episode++) {
  let { observation } = await env.reset(episode === 0 ? { seed: 1 } : {});
  let total = 0;
  for (let done = false; !done;) {
    const action = await agent.act(observation);
    const step = await env.step(action);
    agent.assignReward(step.reward);
    total += step.reward;
    observation = step.observation;
    done = step.terminated || step.truncated;
  }
  returns.push(total);
  const stats = await agent.terminateEpisode(); // trains when the batch is full
  if (stats === undefined) continue;
  updates++;
  const recent = returns.slice(-2000);
  const mean = recent.reduce((sum, value) => sum + value, 0) / recent.length;
  console.log(`hand ${episode + 1}: mean return ${mean.toFixed(3)}, entropy ${stats["entropy"]?.toFixed(3)}`);
}
console.log(`${episodes} hands, ${updates} updates`);

if (updates === 0) {
  console.log("No update: the batch was never full. Nothing was learned, so no adapter is saved.");
} else {
  const { meanReturn, standardError } = await evaluate(agent, () => make("Blackjack-v1"), {
    episodes: isEmbedded ? 2000 : 100,
  });
  console.log(`greedy mean return ${meanReturn.toFixed(3)} ± ${standardError.toFixed(3)} (random -0.394, best -0.043)`);
  await agent.save("runs/example-blackjack"); // an adapter that opens in Python's PEFT
  console.log("Saved the adapter to runs/example-blackjack.");
}
await model.close();
