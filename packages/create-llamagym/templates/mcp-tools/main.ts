// A model learns which tool of the MCP server in server.ts a request needs, and with which
// argument.
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { AutoModelForCausalLMWithValueHead, evaluate, ppo, randomAction, TextAgent, Trainer } from "llamagym";
import type { McpReward } from "llamagym/bridges";
import { openEnv } from "llamagym/envs";
import { renderLearningCurve } from "llamagym/runs";

const SERVER = `mcp:"${process.execPath}" "${fileURLToPath(new URL("server.js", import.meta.url))}"`;
const tasks = ["lamp", "fan", "heater"].flatMap((device) =>
  ["on", "off"].map((state) => ({ prompt: `Turn ${state} the ${device}.`, goal: `The ${device} is ${state}.` })),
);

/** 1 for the right state of the right device. Every episode is one call. */
const reward: McpReward = ({ task, steps }) => ({
  reward: steps.at(-1)?.result.text === task.goal ? 1 : 0,
  terminated: true,
});

const makeEnv = () =>
  openEnv(SERVER, {
    tasks,
    reward,
    finish: false,
    shared: true,
    systemPrompt: "Call turn_on or turn_off with a device.",
  });

const env = await makeEnv();
if (env.text === undefined) throw new Error("The server has no tools.");
const model = await AutoModelForCausalLMWithValueHead.fromPretrained("embedded");
const agent = new TextAgent(model, env.text, {
  actionMode: "schema", // completions are calls that match the schemas of the tools
  historyTurns: 0,
  seed: 1,
  generation: { maxNewTokens: 64 },
  invalidAction: { fallback: randomAction(env) },
  algorithm: ppo({
    batchSize: 64,
    miniBatchSize: 64,
    numPpoEpochs: 8,
    learningRate: 1.5e-3,
    lrSchedulerType: "linear",
    initKlCoef: 0,
    advantageLevel: "turn",
    vfCoef: 0.5,
    entropyCoef: 0.1,
    entropySchedulerType: "linear",
    maxGradNorm: 0.5,
  }),
});
await env.close();

const episodes: number[] = [];
const returns: number[] = [];
const trainer = new Trainer({ agent, env: makeEnv, numEnvs: 64, episodes: 2000, seed: 1 });
await trainer.train({
  onUpdate: ({ state, metrics }) => {
    const mean = metrics["rollout/ep_rew_mean"] ?? NaN;
    episodes.push(state.episodes);
    returns.push(mean);
    console.log(`episode ${state.episodes}: mean return ${mean.toFixed(3)}`);
  },
});
const { meanReturn } = await evaluate(agent, makeEnv, { episodes: 50 });
console.log(`greedy mean return ${meanReturn.toFixed(3)} (random 0.11, best 1)`);

await agent.save("runs/adapter"); // opens in Python's PEFT; agent.load reads it
const curve = renderLearningCurve({
  title: "Calls of MCP tools",
  xLabel: "episodes",
  yLabel: "mean return while training",
  series: [{ name: "seed 1", x: episodes, y: returns }],
  references: [
    { name: "random calls", y: 0.11 },
    { name: "best", y: 1 },
  ],
});
await writeFile("runs/curve.svg", curve);
console.log("Saved runs/adapter and runs/curve.svg.");
await trainer.close();
await model.close();
