// Trains the agent of agent.ts through the URL that it calls.
import { writeFile } from "node:fs/promises";
import { AutoModelForCausalLMWithValueHead, ppo } from "llamagym";
import { GatewayTrainer } from "llamagym/gateway";
import { renderLearningCurve } from "llamagym/runs";
import { playHand } from "./agent.js";

const model = await AutoModelForCausalLMWithValueHead.fromPretrained("embedded");
const trainer = new GatewayTrainer({
  model,
  episodes: Number(process.env.EPISODES ?? 8000),
  numSessions: 64,
  maxCompletionLength: 64,
  seed: 1,
  algorithm: ppo({
    batchSize: 1024,
    miniBatchSize: 256,
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
  agent: async ({ baseURL, seed, reward }) => reward(await playHand(baseURL, seed)),
});

const hands: number[] = [];
const returns: number[] = [];
await trainer.train({
  onUpdate: ({ state, metrics }) => {
    const mean = metrics["rollout/ep_rew_mean"] ?? NaN;
    hands.push(state.episodes);
    returns.push(mean);
    console.log(`hand ${state.episodes}: mean return ${mean.toFixed(3)}`);
  },
});

const { meanReturn, standardError } = await trainer.evaluate({ episodes: 1000 });
console.log(`greedy mean return ${meanReturn.toFixed(3)} ± ${standardError.toFixed(3)} (random -0.394, best -0.043)`);

await model.savePretrained("runs/adapter"); // opens in Python's PEFT
const curve = renderLearningCurve({
  title: "Blackjack by tool calls of the AI SDK",
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
