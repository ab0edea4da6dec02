/**
 * A model learns to call the tools of an MCP server: `npm run example -- mcp-tools [--episodes N] [--model MODEL]
 * [--device DEVICE]`. Needs `npm install @modelcontextprotocol/sdk`. The server is ./mcp-server.ts; the model must ask it for the
 * shelf of a product, and then empty that shelf.
 */
import { fileURLToPath } from "node:url";
import { AutoModelForCausalLMWithValueHead, evaluate, randomAction, TextAgent, Trainer } from "llamagym";
import { openEnv, type McpReward } from "llamagym/envs";
import { parseOptions } from "./options.js";

const ENV = `mcp:"${process.execPath}" "${fileURLToPath(new URL("mcp-server.js", import.meta.url))}"`;
const PRODUCTS = ["apples", "books", "lamps"].flatMap((item) =>
  ["red", "green"].map((color) => `${color} ${item}`),
);
const CALL_COST = 0.05;
const MAX_CALLS = 3;

/** 1 for taking the shelf with the product, less the cost of a call. The episode ends with it, or after MAX_CALLS without it. */
const reward: McpReward = ({ task, steps }) => {
  const { call, result } = steps.at(-1)!;
  const hasTaken = call.name === "take";
  const isRight = hasTaken && result.text.includes(String(task.product));
  return { reward: Number(isRight) - CALL_COST, terminated: hasTaken || steps.length === MAX_CALLS };
};

const makeEnv = () =>
  openEnv(ENV, {
    tasks: PRODUCTS.map((product) => ({ prompt: `Bring the ${product}.`, product })),
    reward,
    finish: "take",
    shared: true,
    systemPrompt: "locate finds the shelf of a product, take empties a shelf.",
  });

const { episodes, model: name, device, isEmbedded } = parseOptions({ episodes: 3000 });
const seed = Number(process.env.SEED ?? 1);
const env = await makeEnv();
const model = await AutoModelForCausalLMWithValueHead.fromPretrained(name, { device });
const agent = new TextAgent(model, env.text!, {
  actionMode: "schema", // completions are calls that match the schemas of the tools
  historyTurns: 0,
  seed,
  generation: { maxNewTokens: 64 },
  invalidAction: { fallback: randomAction(env) },
  ppo: {
    batchSize: 256,
    miniBatchSize: 64,
    learningRate: isEmbedded ? 3e-3 : 1e-4,
    initKlCoef: 0,
    advantageLevel: "turn",
    vfCoef: 0.5,
    entropyCoef: 0.05,
    entropySchedulerType: "linear",
    lrSchedulerType: "linear",
    maxGradNorm: 0.5,
  },
});
await env.close();

const before = await evaluate(agent, makeEnv, { episodes: 50 });
const trainer = new Trainer({ agent, env: makeEnv, numEnvs: 64, episodes, seed });
await trainer.train({
  onUpdate: ({ state, metrics }) =>
    console.log(
      `episode ${state.episodes}: mean return ${metrics["rollout/ep_rew_mean"]?.toFixed(3)}, ` +
        `${metrics["rollout/ep_len_mean"]?.toFixed(2)} calls`,
    ),
});
const after = await evaluate(agent, makeEnv, { episodes: 50 });
console.log(`greedy mean return ${before.meanReturn.toFixed(3)} before, ${after.meanReturn.toFixed(3)} after (best 0.9)`);
await trainer.close();
await model.close();
