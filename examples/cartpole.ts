/**
 * A language model that balances a pole, by GRPO: `npm run example -- cartpole [--episodes N]
 * [--model MODEL] [--device DEVICE]`.
 */
import { Agent, AutoModelForCausalLM, evaluate, getPeftModel, grpo, make, Trainer } from "llamagym";
import { parseOptions } from "./options.js";

class CartPoleAgent extends Agent<Float32Array, number> {
  override formatPrompt([position = 0, velocity = 0, angle = 0, angularVelocity = 0]: Float32Array) {
    return `Keep pole balanced on cart. Current state:
Cart position: ${position.toFixed(3)}, velocity: ${velocity.toFixed(3)}
Pole angle: ${angle.toFixed(3)} rad, angular velocity: ${angularVelocity.toFixed(3)}
Your action: LEFT or RIGHT`;
  }

  override extractAction(completion: string) {
    const text = completion.toUpperCase();
    return text.lastIndexOf("LEFT") > text.lastIndexOf("RIGHT") ? 0 : 1;
  }

  /** Constrains completions to these; leave it out for free completions. */
  override getChoices() {
    return ["LEFT", "RIGHT"];
  }
}

/** Episodes from each start; their returns are compared. */
const GROUP_SIZE = 8;

const { episodes, model: name, device, isEmbedded } = parseOptions({ episodes: 480 });
const base = await AutoModelForCausalLM.fromPretrained(name, { device });
const model = await getPeftModel(base, { r: 16, loraAlpha: 32, seed: 1 });
const agent = new CartPoleAgent(model, undefined, {
  algorithm: grpo({
    numGenerations: GROUP_SIZE,
    // Up to four groups per update.
    batchSize: GROUP_SIZE * Math.min(4, Math.ceil(episodes / GROUP_SIZE)),
    miniBatchSize: 256,
    numIterations: 2,
    gamma: 0.99,
    learningRate: isEmbedded ? 3e-3 : 1e-4,
    entropyCoef: 0.01,
    maxGradNorm: 0.5,
  }),
});

const trainer = new Trainer({ agent, env: "CartPole-v1", numEnvs: 32, episodes, seed: 1 });
let updates = 0;
let printedAt = Date.now();
await trainer.train({
  onProgress: ({ state, metrics }) => {
    if (state.updates === updates) {
      // Pretrained models take minutes per update.
      if (Date.now() - printedAt < 15_000) return;
      printedAt = Date.now();
      return console.log(`  update ${updates + 1}: ${state.turns} turns so far, ${state.episodes} episodes complete`);
    }
    updates = state.updates;
    printedAt = Date.now();
    const { "rollout/ep_rew_mean": mean = NaN, entropy = NaN } = metrics;
    console.log(`${state.episodes} episodes: mean return ${mean.toFixed(1)}, entropy ${entropy.toFixed(3)}`);
  },
});

const evaluated = isEmbedded ? 16 : 4;
console.log(`Evaluating ${evaluated} episodes of at most 500 turns each.`);
const { meanReturn, standardError } = await evaluate(agent, () => make("CartPole-v1"), { episodes: evaluated });
console.log(`greedy mean return ${meanReturn.toFixed(1)} ± ${standardError.toFixed(1)} (random 22, best 500)`);
await model.close();
