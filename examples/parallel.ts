/** Your own agent class, many environments in parallel: `npm run example -- parallel [EPISODES]`. */
import { Agent, AutoModelForCausalLMWithValueHead, evaluate, make, Trainer } from "llamagym";

type Observation = readonly [sum: number, dealer: number, usableAce: number];

class BlackjackAgent extends Agent<Observation, number> {
  override getSystemPrompt() {
    return "You are an expert blackjack player. Answer hit to take another card or stay to stop.";
  }

  override formatObservation([sum, dealer, ace]: Observation) {
    return `Your current total is ${sum}. The dealer shows ${dealer}. You have ${ace === 1 ? "a" : "no"} usable ace. hit or stay?`;
  }

  /** Its replies are one of these. */
  override getChoices() {
    return ["stay", "hit"];
  }

  override extractAction(response: string) {
    return response === "stay" ? 0 : 1;
  }
}

const episodes = Number(process.argv[2] ?? 20_000);
const model = await AutoModelForCausalLMWithValueHead.fromPretrained("embedded");
const agent = new BlackjackAgent(model, model.tokenizer, {
  historyTurns: 0,
  ppo: {
    batchSize: 2048,
    miniBatchSize: 512,
    learningRate: 3e-3,
    lrSchedulerType: "linear",
    initKlCoef: 0,
    advantageLevel: "turn",
    vfCoef: 0.5,
    entropyCoef: 0.05,
    entropySchedulerType: "linear",
    maxGradNorm: 0.5,
  },
});

const trainer = new Trainer({ agent, env: "Blackjack-v1", numEnvs: 128, episodes, seed: 1 });
await trainer.train({
  onProgress: ({ state, progress, metrics }) => {
    if (metrics.num_episodes === state.episodes)
      console.log(`${(100 * progress).toFixed(0)} %: mean return ${metrics["rollout/ep_rew_mean"].toFixed(3)}`);
  },
});

const { meanReturn, standardError } = await evaluate(agent, () => make("Blackjack-v1"), { episodes: 2000 });
console.log(`greedy mean return ${meanReturn.toFixed(3)} ± ${standardError.toFixed(3)} (random -0.394, best -0.043)`);
await model.close();
