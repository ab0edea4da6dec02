/**
 * Your own agent class, many environments in parallel: `npm run example -- parallel [--episodes N]
 * [--model MODEL] [--device DEVICE]`.
 */
import { Agent, AutoModelForCausalLMWithValueHead, evaluate, make, ppo, Trainer } from "llamagym";
import { parseOptions } from "./options.js";

type Observation = readonly [sum: number, dealer: number, usableAce: number];

class BlackjackAgent extends Agent<Observation, number> {
  override getSystemPrompt() {
    return "You are an expert blackjack player. Answer hit to take another card or stay to stop.";
  }

  override formatObservation([sum, dealer, ace]: Observation) {
    return `Your current total is ${sum}. The dealer shows ${dealer}. You have ${ace === 1 ? "a" : "no"} usable ace. hit or stay?`;
  }

  /** Completions are constrained to these. */
  override getChoices() {
    return ["stay", "hit"];
  }

  override extractAction(completion: string) {
    return completion === "stay" ? 0 : 1;
  }
}

const { episodes, model: name, device, isEmbedded } = parseOptions({ episodes: 20_000 });
const model = await AutoModelForCausalLMWithValueHead.fromPretrained(name, { device });
const agent = new BlackjackAgent(model, model.tokenizer, {
  historyTurns: 0,
  algorithm: ppo({
    batchSize: isEmbedded ? 2048 : 256,
    miniBatchSize: isEmbedded ? 512 : 64,
    learningRate: isEmbedded ? 3e-3 : 1e-4,
    lrSchedulerType: "linear",
    initKlCoef: 0,
    advantageLevel: "turn",
    vfCoef: 0.5,
    entropyCoef: 0.05,
    entropySchedulerType: "linear",
    maxGradNorm: 0.5,
  }),
});

const trainer = new Trainer({ agent, env: "Blackjack-v1", numEnvs: Math.min(128, episodes), episodes, seed: 1 });
await trainer.train({
  onProgress: ({ state, progress, metrics }) => {
    if (metrics.num_episodes === state.episodes)
      console.log(`${(100 * progress).toFixed(0)} %: mean return ${metrics["rollout/ep_rew_mean"]?.toFixed(3)}`);
  },
});

const { meanReturn, standardError } = await evaluate(agent, () => make("Blackjack-v1"), {
  episodes: isEmbedded ? 2000 : 100,
});
console.log(`greedy mean return ${meanReturn.toFixed(3)} ± ${standardError.toFixed(3)} (random -0.394, best -0.043)`);
await model.close();
