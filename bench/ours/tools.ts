import { parseArgs } from "node:util";
import { AutoModelForCausalLMWithValueHead, make, ppo, TextAgent, Trainer } from "../../src/index.js";
import { type ShopCall, ShopSupportEnv } from "../../src/envs.js";
import { type AgentEpisode, GatewayTrainer } from "../../src/gateway.js";
import type { Result } from "../framework.js";
import { serve } from "../serve.js";
import type { ToolsWork } from "../tools.js";

const { values } = parseArgs({ options: { threads: { type: "string", default: "1" } } });

const algorithm = ppo({
  batchSize: 256,
  miniBatchSize: 256,
  learningRate: 1e-3,
  advantageLevel: "turn",
  initKlCoef: 0,
});

interface ChatCompletion {
  readonly choices: readonly [
    {
      readonly message: {
        readonly tool_calls: readonly {
          readonly id: string;
          readonly function: { name: ShopCall["name"]; arguments: string };
        }[];
      };
    },
  ];
}

/** Settles one case by tool calls, in one conversation. */
async function settleCase({ baseURL, seed, reward }: AgentEpisode): Promise<void> {
  const env = new ShopSupportEnv();
  const tools = env.tools.map((tool) => ({ type: "function", function: tool }));
  const messages: object[] = [{ role: "user", content: env.reset({ seed }).observation }];
  for (;;) {
    const response = await fetch(`${baseURL}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "policy", messages, tools, tool_choice: "required", parallel_tool_calls: false }),
    });
    if (!response.ok) throw new Error(await response.text());
    const { message } = ((await response.json()) as ChatCompletion).choices[0];
    const [call] = message.tool_calls;
    const step = env.step({ name: call.function.name, arguments: JSON.parse(call.function.arguments) as object });
    if (step.terminated) return reward(step.reward);
    messages.push(message, { role: "tool", tool_call_id: call.id, content: String(step.info["result"]) });
  }
}

async function train({ work, turns }: ToolsWork): Promise<Result> {
  const model = await AutoModelForCausalLMWithValueHead.fromPretrained("embedded", { threads: Number(values.threads) });
  const before = process.cpuUsage();
  let trained: number;
  if (work === "gateway") {
    const trainer = new GatewayTrainer({
      model,
      turns,
      numSessions: 32,
      maxCompletionLength: 64,
      seed: 1,
      algorithm,
      agent: settleCase,
    });
    trained = (await trainer.train()).state.turns;
    await trainer.close();
  } else {
    const env = () => make("ShopSupport-v0", { json: work === "schema" });
    const { text } = env();
    const agent = new TextAgent(model, text!, { actionMode: work, generation: { maxNewTokens: 64 }, algorithm });
    const trainer = new Trainer({ agent, env, turns, numEnvs: 32, seed: 1 });
    trained = (await trainer.train()).state.turns;
  }
  const { user, system } = process.cpuUsage(before);
  await model.close();
  return { seconds: [(user + system) / 1e6], count: trained };
}

await serve<ToolsWork>(train);
