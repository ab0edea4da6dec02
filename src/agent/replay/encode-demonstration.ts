import { LlamaGymError } from "../../errors.js";
import { Dialogue } from "../../rollout/dialogue.js";
import { asExtraction } from "../../rollout/extraction.js";
import type { PromptWriter } from "../../rollout/prompt-writer.js";
import type { Replier } from "../../rollout/replier.js";
import { refusal } from "../../rollout/reply-form.js";
import type { Role } from "../../rollout/role.js";
import { formOf } from "../../rollout/said.js";
import type { DialogueSettings } from "../../rollout/settings.js";
import type { ReplayEpisode, ReplayTurn } from "./buffer.js";
import type { Demonstration, DemonstrationTurn } from "./demonstrations.js";

/** The agent that is to learn demonstrations: how it is told things, how its replies are written, what they mean. */
export interface Learning {
  readonly role: Role;
  readonly writer: PromptWriter;
  readonly replier: Replier;
  readonly dialogue: DialogueSettings;
}

/**
 * A demonstration as the agent would have played it: its prompts as in play, with as much history, and its replies as the tokens
 * that would have been sampled. Throws DEMONSTRATION_REFUSED for a reply in which the agent finds no action, that is not what it
 * holds its replies to, or that is longer than its replies can be.
 */
export async function encodeDemonstration(demonstration: Demonstration, learning: Learning): Promise<ReplayEpisode> {
  const { role, writer, dialogue: settings } = learning;
  const isSingle = role.formatPrompt !== undefined;
  const systemPrompt = isSingle ? undefined : (demonstration.systemPrompt ?? role.getSystemPrompt());
  const dialogue = new Dialogue(writer, systemPrompt, isSingle ? { ...settings, historyTurns: 0 } : settings);
  const turns: ReplayTurn[] = [];
  for (const turn of demonstration.turns) {
    dialogue.show(turn.shown);
    try {
      const encoded = await encodeTurn(turn, dialogue, learning);
      dialogue.accept(encoded.tokens);
      turns.push(encoded);
    } catch (error) {
      throw refused(demonstration, turn, error);
    }
  }
  return { turns, return: demonstration.return ?? null };
}

async function encodeTurn(
  { shown, reply, observation = shown, info = {} }: DemonstrationTurn,
  dialogue: Dialogue,
  { role, replier, dialogue: { replyPrefix } }: Learning,
): Promise<ReplayTurn> {
  const text = reply.startsWith(replyPrefix) ? reply.slice(replyPrefix.length) : reply;
  const found = asExtraction(await role.extractAction(text, observation, info));
  if (found.kind === "failure")
    throw new Error(`the agent finds no action in it${found.reason && ` (${found.reason})`}`);
  const form = formOf(role, observation, info);
  const prompt = dialogue.prompt((ids) => replier.longest(form, ids));
  const tokens = replier.encode(text, { prompt, form });
  if (tokens === undefined) throw new Error(`it is ${refusal(form!)}`);
  const longest = replier.longest(form, prompt);
  if (tokens.length > longest)
    throw new Error(`it has ${tokens.length} tokens, and the agent's replies ${longest} at most (maxNewTokens)`);
  return { prompt, tokens, text };
}

function refused({ source }: Demonstration, { reply }: DemonstrationTurn, error: unknown): LlamaGymError {
  const where = source === undefined ? "A demonstration" : source;
  const reason = error instanceof Error ? error.message : String(error);
  return new LlamaGymError(
    "DEMONSTRATION_REFUSED",
    `${where}: the reply ${JSON.stringify(reply)} cannot be learnt: ${reason}. Correct it, or leave out what cannot be used (brokenLines: "skip").`,
    { cause: error },
  );
}
