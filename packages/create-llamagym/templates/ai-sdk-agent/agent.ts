// An agent as users of the AI SDK write it: it needs a URL and nothing of llamagym except the
// cards.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, tool } from "ai";
import { make } from "llamagym/envs";
import { z } from "zod";

const tools = {
  hit: tool({ description: "Take another card.", inputSchema: z.object({}) }),
  stay: tool({ description: "Take no more cards.", inputSchema: z.object({}) }),
};

/** Plays one hand and returns what it won: 1, 0 or -1. */
export async function playHand(baseURL: string, seed: number): Promise<number> {
  const model = createOpenAICompatible({ name: "policy", baseURL }).chatModel("policy");
  const env = make<readonly [sum: number, dealer: number, usableAce: number], number>("Blackjack-v1");
  let { observation } = await env.reset({ seed });
  for (;;) {
    const [sum, dealer, ace] = observation;
    const { toolCalls } = await generateText({
      model,
      tools,
      toolChoice: "required",
      system: "You are an expert blackjack player.",
      prompt: `Your current total is ${sum}. The dealer shows ${dealer}. You have ${ace === 1 ? "a" : "no"} usable ace.`,
    });
    const step = await env.step(toolCalls[0]?.toolName === "hit" ? 1 : 0);
    if (step.terminated || step.truncated) return step.reward;
    observation = step.observation;
  }
}
