/**
 * An algorithm in one file: A2C (Mnih et al. 2016) with a value head. Three ways to run it:
 * - an agent of your own and the Gym loop, or a Trainer: `npm run example -- own-algorithm
 *   [--episodes N] [--model MODEL] [--device DEVICE]` does both;
 * - the command line: `llamagym train blackjack --algorithm ./own-algorithm.js --value-coef 0.25`.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import {
  Agent,
  AutoModelForCausalLMWithValueHead,
  defineAlgorithm,
  evaluate,
  make,
  Trainer,
  type Device,
  settings,
} from "llamagym";
import { type ScoredTrajectory } from "llamagym/engine";
import { mul, neg, reduceSum, square, sub, add, type Node } from "llamagym/engine";

/** Defaults fit the model that comes with llamagym; a larger one needs a lower learning rate. */
export const a2c = defineAlgorithm({
  name: "a2c",
  title: "A2C",
  settings: {
    batchSize: settings.integer({ default: 128, min: 1, description: "Turns per update.", source: "measured" }),
    learningRate: settings.number({
      default: 7e-4,
      above: 0,
      description: "Learning rate of AdamW.",
      source: "measured",
    }),
    lrSchedulerType: settings.choice({
      default: "linear",
      choices: ["constant", "linear", "cosine"],
      description: "Learning rate schedule.",
      source: "Mnih et al. 2016",
    }),
    maxGradNorm: settings.number({
      default: 0.5,
      above: 0,
      description: "Maximum gradient norm.",
      source: "OpenAI Baselines",
    }),
    gamma: settings.number({
      default: 0.99,
      min: 0,
      max: 1,
      description: "Discount per turn.",
      source: "Mnih et al. 2016",
    }),
    valueCoef: settings.number({
      default: 0.25,
      min: 0,
      description: "Weight of the value loss.",
      source: "OpenAI Baselines",
    }),
    entropyCoef: settings.number({
      default: 0.1,
      min: 0,
      description: "Weight of the entropy bonus.",
      source: "measured",
    }),
    entropySchedulerType: settings.choice({
      default: "linear",
      choices: ["constant", "linear", "cosine"],
      description: "Schedule of the entropy bonus.",
      source: "measured",
    }),
  },
  critic: true,
  rollout: ({ batchSize }) => ({ kind: "turns", turns: batchSize }),

  /**
   * R_t = r_t + gamma * R_(t+1), from the value of the next state where an episode continues; A_t =
   * R_t - V(s_t).
   */
  advantages: (trajectories, { gamma }) => {
    const returns = trajectories.map((trajectory) => discountedReturns(trajectory, gamma));
    return {
      advantages: trajectories.map(({ turns }, i) =>
        turns.map(({ oldValues }, t) => oldValues!.map(() => returns[i]![t]! - oldValues![0]!)),
      ),
      returns: trajectories.map(({ turns }, i) =>
        turns.map(({ oldLogProbs }, t) => oldLogProbs.map(() => returns[i]![t]!)),
      ),
    };
  },

  /**
   * mean(-A log pi) + valueCoef * mean((V - R)^2) - entropyCoef * mean(H); weighted sums are means
   * over the step.
   */
  loss: ({ logProbs, values, entropy, perToken, weights, entropyFactor }, { valueCoef, entropyCoef }) => {
    const mean = (x: Node) => reduceSum(mul(x, weights));
    const policyLoss = neg(mean(mul(logProbs, perToken("advantages"))));
    const valueLoss = mean(square(sub(values!, perToken("returns"))));
    const meanEntropy = mean(entropy!);
    const loss = sub(add(policyLoss, mul(valueLoss, valueCoef)), mul(meanEntropy, mul(entropyFactor, entropyCoef)));
    return { loss, statistics: { policyLoss, valueLoss, entropy: meanEntropy } };
  },

  metrics: ({ means }) => ({
    entropy: means.entropy!,
    "loss/policy_avg": means.policyLoss!,
    "loss/value_avg": means.valueLoss!,
  }),
});

function discountedReturns({ turns, bootstrapValue }: ScoredTrajectory, gamma: number): number[] {
  const returns: number[] = [];
  let next = bootstrapValue;
  for (const { turn } of turns.toReversed()) returns.unshift((next = turn.reward + gamma * next));
  return returns;
}

type Observation = readonly [sum: number, dealer: number, usableAce: number];

class BlackjackAgent extends Agent<Observation, number> {
  override getSystemPrompt() {
    return "You are an expert blackjack player. Answer hit to take another card or stay to stop.";
  }

  override formatObservation([sum, dealer, ace]: Observation) {
    return `Your current total is ${sum}. The dealer shows ${dealer}. You have ${ace === 1 ? "a" : "no"} usable ace. hit or stay?`;
  }

  override getChoices() {
    return ["stay", "hit"];
  }

  override extractAction(response: string) {
    return response === "stay" ? 0 : 1;
  }
}

async function main(): Promise<void> {
  const text = (value: string) => ({ type: "string", default: value }) as const;
  const { values } = parseArgs({ options: { episodes: text("26000"), model: text("embedded"), device: text("auto") } });
  const device = values.device as Device;
  const model = await AutoModelForCausalLMWithValueHead.fromPretrained(values.model, { device });
  const agent = new BlackjackAgent(model, model.tokenizer, { historyTurns: 0, algorithm: a2c(), seed: 1 });

  // The Gym loop: one update, once 128 turns are collected.
  const env = make<Observation, number>("Blackjack-v1");
  for (let metrics = undefined; metrics === undefined; metrics = await agent.terminateEpisode()) {
    let { observation } = await env.reset();
    for (let done = false; !done;) {
      const step = await env.step(await agent.act(observation));
      agent.assignReward(step.reward);
      observation = step.observation;
      done = step.terminated || step.truncated;
    }
  }

  // A Trainer: 64 environments in parallel.
  await new Trainer({ agent, env: "Blackjack-v1", numEnvs: 64, episodes: Number(values.episodes), seed: 1 }).train({
    onProgress: ({ progress, metrics, state }) => {
      if (metrics.num_turns === state.turns && state.updates % 32 === 0)
        console.log(`${(100 * progress).toFixed(0)} %: mean return ${metrics["rollout/ep_rew_mean"]?.toFixed(3)}`);
    },
  });
  const { meanReturn, standardError } = await evaluate(agent, () => make("Blackjack-v1"), { episodes: 10_000 });
  console.log(`greedy mean return ${meanReturn.toFixed(3)} ± ${standardError.toFixed(3)} (random -0.394, best -0.043)`);
  await model.close();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
