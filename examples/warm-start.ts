/**
 * Demonstrations first, then reinforcement learning: `npm run example -- warm-start [--episodes N]
 * [--model MODEL] [--device DEVICE]`. `llamagym demos blackjack --episodes 100 --output FILE`
 * recorded the file; docs/demonstrations.md describes it.
 */
import { AutoModelForCausalLMWithValueHead, evaluate, make, ppo, TextAgent, Trainer } from "llamagym";
import { parseOptions } from "./options.js";

const { episodes, model: name, device, isEmbedded } = parseOptions({ episodes: 2000 });
const model = await AutoModelForCausalLMWithValueHead.fromPretrained(name, { device });
const agent = new TextAgent(model, make("Blackjack-v1").text!, {
  seed: 1,
  historyTurns: 0,
  actionMode: "choices",
  ...(isEmbedded ? { sftSteps: 50, sftBatchSize: 64, sftLearningRate: 3e-3 } : { sftSteps: 20 }),
  algorithm: ppo({
    batchSize: isEmbedded ? 512 : 128,
    miniBatchSize: isEmbedded ? 128 : 64,
    // Small steps and a limit to each update keep what the demonstrations have taught.
    learningRate: isEmbedded ? 5e-4 : 1e-4,
    targetKl: 0.02,
    initKlCoef: 0,
    advantageLevel: "turn",
    maxGradNorm: 0.5,
  }),
});

async function measure(when: string): Promise<void> {
  const options = { episodes: isEmbedded ? 2000 : 100, seed: 1000 };
  const { meanReturn, standardError } = await evaluate(agent, () => make("Blackjack-v1"), options);
  console.log(`${when}: greedy mean return ${meanReturn.toFixed(3)} ± ${standardError.toFixed(3)}`);
}

await measure("before");
await agent.sftFromJsonl("examples/demonstrations/blackjack.jsonl");
await measure("after the demonstrations");
await new Trainer({ agent, env: "Blackjack-v1", numEnvs: 32, episodes, seed: 1 }).train();
await measure(`after ${episodes} hands`);
console.log("For comparison: random -0.394, best -0.043");
await model.close();
