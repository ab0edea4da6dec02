// A language model learns Blackjack from text: an Agent puts observations into words and reads
// actions from completions.
import { writeFile } from "node:fs/promises";
import { Agent, AutoModelForCausalLMWithValueHead, evaluate, make, ppo, Trainer } from "llamagym";
import { renderLearningCurve } from "llamagym/runs";

type Hand = readonly [sum: number, dealer: number, usableAce: number];

class BlackjackAgent extends Agent<Hand, number> {
  override getSystemPrompt() {
    return "You are an expert blackjack player. Answer hit to take another card or stay to stop.";
  }

  override formatObservation([sum, dealer, ace]: Hand) {
    return `Your current total is ${sum}. The dealer shows ${dealer}. You have ${ace === 1 ? "a" : "no"} usable ace. hit or stay?`;
  }

  override getChoices() {
    return ["stay", "hit"]; // completions are constrained to these; leave it out for free completions
  }

  override extractAction(completion: string) {
    return completion === "stay" ? 0 : 1;
  }
}

// The model of llamagym's package; a folder, a GGUF file or a Hugging Face id opens another.
const model = await AutoModelForCausalLMWithValueHead.fromPretrained("embedded");
const agent = new BlackjackAgent(model, model.tokenizer, {
  seed: 1,
  historyTurns: 0, // each hand is decided by the current observation
  algorithm: ppo({
    batchSize: 2048,
    miniBatchSize: 512,
    numPpoEpochs: 4,
    learningRate: 3e-3,
    lrSchedulerType: "linear",
    initKlCoef: 0,
    advantageLevel: "turn",
    vfCoef: 0.5,
    entropyCoef: 0.1,
    entropySchedulerType: "linear",
    maxGradNorm: 0.5,
  }),
});

const hands: number[] = [];
const returns: number[] = [];
const trainer = new Trainer({ agent, env: "Blackjack-v1", numEnvs: 256, episodes: 20_000, seed: 1 });
await trainer.train({
  onUpdate: ({ state, metrics }) => {
    const mean = metrics["rollout/ep_rew_mean"] ?? NaN;
    hands.push(state.episodes);
    returns.push(mean);
    console.log(`hand ${state.episodes}: mean return ${mean.toFixed(3)}`);
  },
});
await trainer.close();

const { meanReturn, standardError } = await evaluate(agent, () => make("Blackjack-v1"), { episodes: 5000 });
console.log(`greedy mean return ${meanReturn.toFixed(3)} ± ${standardError.toFixed(3)} (random -0.394, best -0.043)`);

await agent.save("runs/adapter"); // opens in Python's PEFT; agent.load reads it
const curve = renderLearningCurve({
  title: "Blackjack",
  xLabel: "hands",
  yLabel: "mean return while training",
  series: [{ name: "seed 1", x: hands, y: returns }],
  references: [
    { name: "random actions", y: -0.394 },
    { name: "best known", y: -0.043 },
  ],
});
await writeFile("runs/curve.svg", curve);
console.log("Saved runs/adapter and runs/curve.svg.");
await model.close();
