/**
 * An agent that calls OpenAI's API, trained through its URL: `npm run example -- openai-agent
 * [--episodes N] [--model MODEL] [--device DEVICE]`. `playHand` needs no llamagym; `new OpenAI({
 * baseURL, apiKey: "none" })` replaces `chat` as well.
 */
import { AutoModelForCausalLMWithValueHead, make, ppo } from "llamagym";
import { GatewayTrainer } from "llamagym/gateway";
import { parseOptions } from "./options.js";

type Observation = readonly [sum: number, dealer: number, usableAce: number];

interface ChatCompletion {
  readonly choices: readonly [{ readonly message: { readonly content: string } }];
}

async function chat(baseURL: string, question: string): Promise<string> {
  const messages = [
    { role: "system", content: "You are an expert blackjack player. Answer hit to take another card or stay to stop." },
    { role: "user", content: question },
  ];
  const response = await fetch(`${baseURL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "policy", messages }),
  });
  if (!response.ok) throw new Error(await response.text());
  const { choices } = (await response.json()) as ChatCompletion;
  return choices[0].message.content;
}

/** Plays one hand and returns what it won: 1, 0 or -1. */
async function playHand(baseURL: string, seed: number): Promise<number> {
  const env = make<Observation, number>("Blackjack-v1");
  let { observation } = await env.reset({ seed });
  for (;;) {
    const [sum, dealer, ace] = observation;
    const answer = await chat(
      baseURL,
      `Your current total is ${sum}. The dealer shows ${dealer}. You have ${ace === 1 ? "a" : "no"} usable ace. hit or stay?`,
    );
    const step = await env.step(answer.includes("hit") ? 1 : 0);
    if (step.terminated || step.truncated) return step.reward;
    observation = step.observation;
  }
}

const { episodes, model: name, device, isEmbedded } = parseOptions({ episodes: 20_000 });
const model = await AutoModelForCausalLMWithValueHead.fromPretrained(name, { device });
const trainer = new GatewayTrainer({
  model,
  episodes,
  numSessions: 64,
  maxCompletionLength: 8,
  seed: 1,
  algorithm: ppo({
    batchSize: isEmbedded ? 512 : 256,
    miniBatchSize: isEmbedded ? 256 : 64,
    learningRate: isEmbedded ? 3e-3 : 1e-4,
    lrSchedulerType: "linear",
    initKlCoef: 0,
    advantageLevel: "turn",
    vfCoef: 0.5,
    entropyCoef: 0.05,
    entropySchedulerType: "linear",
    maxGradNorm: 0.5,
  }),
  agent: async ({ baseURL, seed, reward }) => reward(await playHand(baseURL, seed)),
});
const { state } = await trainer.train({
  onUpdate: ({ state: { episodes: hands }, metrics }) =>
    console.log(
      `hand ${hands}: mean return ${metrics["rollout/ep_rew_mean"]?.toFixed(3)} (random -0.394, best -0.043)`,
    ),
});
await model.savePretrained("runs/example-openai-agent"); // an adapter that opens in Python's PEFT
console.log(`${state.episodes} hands, ${state.updates} updates. Saved the adapter to runs/example-openai-agent.`);
await model.close();
