/**
 * A model learns to call the tools of an MCP server, ./mcp-server.ts: `npm run example -- mcp-tools
 * [--episodes N] [--model MODEL] [--device DEVICE]`. Needs `npm install @modelcontextprotocol/sdk`.
 * The model must call the right tool for the right device.
 */
import { fileURLToPath } from "node:url";
import { AutoModelForCausalLMWithValueHead, evaluate, ppo, randomAction, TextAgent, Trainer } from "llamagym";
import { openEnv } from "llamagym/envs";
import { type McpReward } from "llamagym/bridges";
import { parseOptions } from "./options.js";

const ENV = `mcp:"${process.execPath}" "${fileURLToPath(new URL("mcp-server.js", import.meta.url))}"`;
const tasks = ["lamp", "fan", "heater"].flatMap((device) =>
  ["on", "off"].map((state) => ({ prompt: `Turn ${state} the ${device}.`, goal: `The ${device} is ${state}.` })),
);

/** 1 for the right state of the right device. Every episode is one call. */
const reward: McpReward = ({ task, steps }) => ({
  reward: steps.at(-1)?.result.text === task.goal ? 1 : 0,
  terminated: true,
});

const makeEnv = () =>
  openEnv(ENV, {
    tasks,
    reward,
    finish: false,
    shared: true,
    systemPrompt: "Call turn_on or turn_off with a device.",
  });

const { episodes, model: name, device, isEmbedded } = parseOptions({ episodes: 2000 });
const seed = Number(process.env.SEED ?? 1);
const env = await makeEnv();
const model = await AutoModelForCausalLMWithValueHead.fromPretrained(name, { device });
const agent = new TextAgent(model, env.text!, {
  actionMode: "schema", // completions are calls that match the schemas of the tools
  historyTurns: 0,
  seed,
  generation: { maxNewTokens: 64 },
  invalidAction: { fallback: randomAction(env) },
  algorithm: ppo({
    batchSize: 64,
    miniBatchSize: 64,
    numPpoEpochs: 8,
    learningRate: isEmbedded ? 3e-3 : 1e-4,
    initKlCoef: 0,
    advantageLevel: "turn",
    vfCoef: 0.5,
    entropyCoef: 0.05,
    entropySchedulerType: "linear",
    lrSchedulerType: "linear",
    maxGradNorm: 0.5,
  }),
});
await env.close();

const before = await evaluate(agent, makeEnv, { episodes: 50 });
const trainer = new Trainer({ agent, env: makeEnv, numEnvs: 64, episodes, seed });
await trainer.train({
  onUpdate: ({ state, metrics }) =>
    console.log(`episode ${state.episodes}: mean return ${metrics["rollout/ep_rew_mean"]?.toFixed(3)}`),
});
const after = await evaluate(agent, makeEnv, { episodes: 50 });
console.log(
  `greedy mean return ${before.meanReturn.toFixed(3)} before, ${after.meanReturn.toFixed(3)} after (random 0.11, best 1)`,
);
await trainer.close();
await model.close();
