/** A language model that balances a pole, by GRPO: `npm run example -- cartpole [TURNS] [MODEL]`. */
import { Agent, AutoModelForCausalLM, evaluate, getPeftModel, make, Trainer } from "llamagym";

class CartPoleAgent extends Agent<Float32Array, number> {
  override formatPrompt([position, velocity, angle, angularVelocity]: Float32Array) {
    return `Keep pole balanced on cart. Current state:
Cart position: ${position.toFixed(3)}, velocity: ${velocity.toFixed(3)}
Pole angle: ${angle.toFixed(3)} rad, angular velocity: ${angularVelocity.toFixed(3)}
Your action: LEFT or RIGHT`;
  }

  override extractAction(response: string) {
    const text = response.toUpperCase();
    return text.lastIndexOf("LEFT") > text.lastIndexOf("RIGHT") ? 0 : 1;
  }

  /** Its replies are one of these; leave this out for free replies. */
  override getChoices() {
    return ["LEFT", "RIGHT"];
  }
}

const [turns = "30000", name = "embedded"] = process.argv.slice(2);
const model = await getPeftModel(await AutoModelForCausalLM.fromPretrained(name), { r: 16, loraAlpha: 32, seed: 1 });
const agent = new CartPoleAgent(model, undefined, {
  // Eight episodes from each of four starts; what a turn is worth is how long the pole stayed up from it on.
  grpo: {
    numGenerations: 8,
    batchSize: 32,
    miniBatchSize: 256,
    numIterations: 2,
    gamma: 0.99,
    learningRate: name === "embedded" ? 3e-3 : 1e-4,
    entropyCoef: 0.01,
    maxGradNorm: 0.5,
  },
});

const trainer = new Trainer({ agent, env: "CartPole-v1", numEnvs: 32, turns: Number(turns), seed: 1 });
let updates = 0;
await trainer.train({
  onProgress: ({ state, metrics }) => {
    if (state.updates === updates) return;
    updates = state.updates;
    const { "rollout/ep_rew_mean": mean, entropy } = metrics;
    console.log(`${state.turns} turns: mean return ${mean.toFixed(1)}, entropy ${entropy.toFixed(3)}`);
  },
});

const { meanReturn, standardError } = await evaluate(agent, () => make("CartPole-v1"), { episodes: 16 });
console.log(`greedy mean return ${meanReturn.toFixed(1)} ± ${standardError.toFixed(1)} (random 22, best 500)`);
await model.close();
