/**
 * An agent of LangChain.js (npm package `@langchain/openai`) with a structured output, trained
 * through its URL: `npm run example -- langchain-agent [--episodes N] [--processes N] [--model
 * MODEL] [--device DEVICE]`. `playHand` needs no llamagym.
 */
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { ChatOpenAI } from "@langchain/openai";
import { make } from "llamagym";
import { z } from "zod";
import { trainAgent } from "./train-agent.js";

const Move = z.object({ move: z.enum(["hit", "stay"]) });
const prompt = ChatPromptTemplate.fromMessages([
  ["system", "You are an expert blackjack player. Answer hit to take another card or stay to stop."],
  ["user", "Your current total is {sum}. The dealer shows {dealer}. You have {ace} usable ace. hit or stay?"],
]);

/** Plays one hand and returns what it won: 1, 0 or -1. */
async function playHand(baseURL: string, seed: number): Promise<number> {
  const model = new ChatOpenAI({ model: "policy", apiKey: "none", maxRetries: 0, configuration: { baseURL } });
  const chain = prompt.pipe(model.withStructuredOutput(Move, { name: "move", method: "jsonSchema" }));
  const env = make<readonly [sum: number, dealer: number, usableAce: number], number>("Blackjack-v1");
  let { observation } = await env.reset({ seed });
  for (;;) {
    const [sum, dealer, ace] = observation;
    const { move } = await chain.invoke({ sum, dealer, ace: ace === 1 ? "a" : "no" });
    const step = await env.step(move === "hit" ? 1 : 0);
    if (step.terminated || step.truncated) return step.reward;
    observation = step.observation;
  }
}

await trainAgent("langchain-agent", playHand);
