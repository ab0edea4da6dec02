/**
 * An agent of the AI SDK (npm package `ai`), or of OpenAI's client, whose tools have arguments: it
 * settles the cases of a shop. It learns ten cases of an expert first, then by PPO through its URL:
 * `npm run example -- shop-agent [--client ai-sdk | openai] [--model MODEL] [--seed N] [--turns N]
 * [--examples N] [--eval-episodes N]`.
 */
import { parseArgs } from "node:util";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, type ModelMessage, tool, type ToolSet } from "ai";
import OpenAI from "openai";
import { AutoModelForCausalLMWithValueHead, type ChatMessage, ppo, SftTrainer } from "llamagym";
import { registry, type ShopCall, ShopSupportEnv } from "llamagym/envs";
import { GatewayTrainer } from "llamagym/gateway";

const { values } = parseArgs({
  options: {
    client: { type: "string", default: "ai-sdk" },
    model: { type: "string", default: "embedded" },
    seed: { type: "string", default: "1" },
    turns: { type: "string", default: "5120" },
    examples: { type: "string", default: "10" },
    "eval-episodes": { type: "string", default: "200" },
  },
});
const seed = Number(values.seed);

const INSTRUCTIONS = "You settle the cases of a shop.";
const { tools: shopTools } = new ShopSupportEnv();
const tools: ToolSet = Object.fromEntries(
  shopTools.map(({ name, description, parameters }) => [
    name,
    tool({ description, inputSchema: jsonSchema<ShopCall["arguments"]>(parameters) }),
  ]),
);

/** Settles one case, and returns 1 if the database is right at the end, otherwise 0. */
async function settleWithAiSdk(baseURL: string, caseSeed: number): Promise<number> {
  const model = createOpenAICompatible({ name: "policy", baseURL }).chatModel("policy");
  const shop = new ShopSupportEnv();
  const { observation } = await shop.reset({ seed: caseSeed });
  const messages: ModelMessage[] = [{ role: "user", content: observation }];
  for (;;) {
    const { toolCalls, responseMessages } = await generateText({
      model,
      tools,
      toolChoice: "required",
      instructions: INSTRUCTIONS,
      messages,
    });
    const { toolCallId, toolName, input } = toolCalls[0]!;
    const call = { name: toolName, arguments: input } as ShopCall;
    const { info, reward, terminated } = await shop.step(call);
    if (terminated) return reward;
    const output = { type: "text", value: String(info.result) } as const;
    messages.push(...responseMessages, {
      role: "tool",
      content: [{ type: "tool-result", toolCallId, toolName, output }],
    });
  }
}

/** The same with OpenAI's client. */
async function settleWithOpenAI(baseURL: string, caseSeed: number): Promise<number> {
  const client = new OpenAI({ baseURL, apiKey: "none" });
  const shop = new ShopSupportEnv();
  const { observation } = await shop.reset({ seed: caseSeed });
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: "system", content: INSTRUCTIONS },
    { role: "user", content: observation },
  ];
  for (;;) {
    const { choices } = await client.chat.completions.create({
      model: "policy",
      tools: shopTools.map((shopTool) => ({ type: "function", function: { ...shopTool } })),
      tool_choice: "required",
      messages,
    });
    const { message } = choices[0]!;
    const call = message.tool_calls![0] as OpenAI.ChatCompletionMessageFunctionToolCall;
    const input = { name: call.function.name, arguments: JSON.parse(call.function.arguments) as unknown };
    const { info, reward, terminated } = await shop.step(input as ShopCall);
    if (terminated) return reward;
    messages.push(message, { role: "tool", tool_call_id: call.id, content: String(info.result) });
  }
}

/** The conversation of a case that the expert settles. */
async function writeExample(caseSeed: number) {
  const shop = new ShopSupportEnv();
  const expert = registry.spec("ShopSupport-v0").expert!(shop);
  let { observation, info } = await shop.reset({ seed: caseSeed });
  const messages: ChatMessage[] = [
    { role: "system", content: INSTRUCTIONS },
    { role: "user", content: observation },
  ];
  for (;;) {
    const call = (await expert(observation, info)) as ShopCall;
    const id = `call${messages.length}`;
    messages.push({ role: "assistant", content: "", tool_calls: [{ id, type: "function", function: call }] });
    const step = await shop.step(call);
    ({ observation, info } = step);
    if (step.terminated) break;
    messages.push({ role: "tool", tool_call_id: id, content: String(info.result) });
  }
  return {
    messages,
    tools: shopTools.map((shopTool) => ({ type: "function", function: shopTool })),
    toolChoice: "required" as const,
  };
}

const clients = { "ai-sdk": settleWithAiSdk, openai: settleWithOpenAI };
if (!Object.hasOwn(clients, values.client)) throw new Error(`--client is ai-sdk or openai, not ${values.client}.`);
const settleCase = clients[values.client as keyof typeof clients];
const isEmbedded = values.model === "embedded";
const model = await AutoModelForCausalLMWithValueHead.fromPretrained(values.model, { peftConfig: { r: 16, seed } });
const train = await Promise.all(
  Array.from({ length: Number(values.examples) }, (_, i) => writeExample(10_000 * seed + i)),
);
const sft = await SftTrainer.create(model, {
  train,
  toolCalls: "text",
  learningRate: isEmbedded ? 3e-3 : 1e-3,
  maxSteps: 100,
  seed,
});
await sft.train();

const trainer = new GatewayTrainer({
  model,
  turns: Number(values.turns),
  numSessions: 64,
  maxCompletionLength: 32,
  seed,
  algorithm: ppo({
    batchSize: 256,
    miniBatchSize: 128,
    numPpoEpochs: 4,
    learningRate: isEmbedded ? 5e-4 : 1e-4,
    lrSchedulerType: "linear",
    initKlCoef: 0,
    advantageLevel: "turn",
    gamma: 1,
    lam: 0.95,
    entropyCoef: 0.01,
    maxGradNorm: 0.5,
  }),
  agent: async ({ baseURL, seed: caseSeed, reward }) => reward(await settleCase(baseURL, caseSeed)),
});
const evaluate = async (name: string) => {
  const { meanReturn, standardError } = await trainer.evaluate({ episodes: Number(values["eval-episodes"]) });
  console.log(`${name}: ${meanReturn.toFixed(3)} ± ${standardError.toFixed(3)} of cases settled, greedy`);
};
await evaluate(`after ${train.length} examples`);
await trainer.train({
  onUpdate: ({ state: { turns }, metrics }) =>
    console.log(`turn ${turns}: mean return ${metrics["rollout/ep_rew_mean"]?.toFixed(3)}`),
});
await evaluate("after PPO");
await model.savePretrained("runs/example-shop-agent");
console.log("Saved the adapter to runs/example-shop-agent.");
await model.close();
