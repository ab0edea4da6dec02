/**
 * Your own agent and the usual Gym loop: `npm run example -- blackjack [EPISODES]`.
 * One game at a time, as the loop is written; examples/parallel.ts plays many at once.
 */
import { Agent, AutoModelForCausalLMWithValueHead, make } from "llamagym";

type Observation = readonly [sum: number, dealer: number, usableAce: number];

class BlackjackAgent extends Agent<Observation, number> {
  override getSystemPrompt() {
    return "You are an expert blackjack player. Come closer to 21 than the dealer without going over it. Answer hit to take another card or stay to stop.";
  }

  override formatObservation([sum, dealer, ace]: Observation) {
    return `Your current total is ${sum}. The dealer shows ${dealer === 1 ? "ace" : dealer}. You have ${ace === 1 ? "a" : "no"} usable ace. hit or stay?`;
  }

  override extractAction(response: string) {
    return response.includes("stay") ? 0 : 1;
  }
}

const episodes = Number(process.argv[2] ?? 3000);
const model = await AutoModelForCausalLMWithValueHead.fromPretrained("embedded");
const agent = new BlackjackAgent(model, model.tokenizer, {
  generation: { maxNewTokens: 4 },
  // Every hand is decided by what is seen: no need to show earlier turns.
  historyTurns: 0,
  ppo: { batchSize: 256, miniBatchSize: 64, learningRate: 3e-3, initKlCoef: 0, entropyCoef: 0.02, maxGradNorm: 0.5 },
});
const env = make<Observation, number>("Blackjack-v1");

const returns: number[] = [];
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
  if (stats !== undefined) {
    const recent = returns.slice(-500);
    const mean = recent.reduce((sum, value) => sum + value, 0) / recent.length;
    console.log(`hand ${episode + 1}: mean return ${mean.toFixed(3)}, entropy ${stats["entropy"].toFixed(3)}`);
  }
}

// From here on it plays without training, and greedily.
agent.eval();
const { observation } = await env.reset({ seed: 2 });
console.log(`It sees ${observation.join(", ")} and plays ${(await agent.act(observation)) === 1 ? "hit" : "stay"}.`);

await agent.save("runs/example-blackjack"); // an adapter that opens in Python's PEFT
await model.close();
