import { LlamaGymError } from "../../../core/errors.js";
import { PromptBuilder } from "../../rollout/prompt-builder.js";
import { toExtraction } from "../../rollout/extraction.js";
import type { PromptRenderer } from "../../rollout/prompt-renderer.js";
import type { CompletionSampler } from "../../rollout/completion-sampler.js";
import { describeViolation } from "../../../generation/constraints/output-constraint.js";
import type { AgentInterface } from "../../rollout/agent-interface.js";
import { constraintFor } from "../../rollout/call-agent.js";
import type { PromptSettings } from "../../rollout/rollout-settings.js";
import type { ReplayEpisode, ReplayTurn } from "./replay-buffer.js";
import type { Demonstration, DemonstrationTurn } from "../../data/read-demonstrations.js";

/** The agent that is to learn demonstrations: how it is told things, how its replies are written, what they mean. */
export interface DemonstrationContext {
  readonly agent: AgentInterface;
  readonly renderer: PromptRenderer;
  readonly sampler: CompletionSampler;
  readonly promptSettings: PromptSettings;
}

/**
 * A demonstration as the agent would have played it: its prompts as in play, with as much history, and its replies as the tokens
 * that would have been sampled. Throws DEMONSTRATION_REJECTED for a reply in which the agent finds no action, that is not what it
 * holds its replies to, or that is longer than its replies can be.
 */
export async function encodeDemonstration(
  demonstration: Demonstration,
  context: DemonstrationContext,
): Promise<ReplayEpisode> {
  const { agent, renderer, promptSettings: settings } = context;
  const isSingleTurn = agent.formatPrompt !== undefined;
  const systemPrompt = isSingleTurn ? undefined : (demonstration.systemPrompt ?? agent.getSystemPrompt());
  const promptBuilder = new PromptBuilder(
    renderer,
    systemPrompt,
    isSingleTurn ? { ...settings, historyTurns: 0 } : settings,
  );
  const turns: ReplayTurn[] = [];
  for (const turn of demonstration.turns) {
    promptBuilder.addObservation(turn.observationText);
    try {
      const encoded = await encodeTurn(turn, promptBuilder, context);
      promptBuilder.addCompletion(encoded.tokens);
      turns.push(encoded);
    } catch (error) {
      throw rejectionError(demonstration, turn, error);
    }
  }
  return { turns, return: demonstration.return ?? null };
}

async function encodeTurn(
  { observationText, completion, observation = observationText, info = {} }: DemonstrationTurn,
  promptBuilder: PromptBuilder,
  { agent, sampler, promptSettings: { completionPrefix } }: DemonstrationContext,
): Promise<ReplayTurn> {
  const text = completion.startsWith(completionPrefix) ? completion.slice(completionPrefix.length) : completion;
  const extraction = toExtraction(await agent.extractAction(text, observation, info));
  if (extraction.kind === "failure")
    throw new Error(`the agent finds no action in it${extraction.reason && ` (${extraction.reason})`}`);
  const constraint = constraintFor(agent, observation, info);
  const prompt = promptBuilder.build((ids) => sampler.maxLength(constraint, ids));
  const tokens = sampler.encode(text, { prompt, constraint });
  if (tokens === undefined) throw new Error(`it is ${describeViolation(constraint!)}`);
  const maxLength = sampler.maxLength(constraint, prompt);
  if (tokens.length > maxLength)
    throw new Error(`it has ${tokens.length} tokens, and the agent's replies ${maxLength} at most (maxNewTokens)`);
  return { prompt, tokens, text };
}

function rejectionError({ source }: Demonstration, { completion }: DemonstrationTurn, error: unknown): LlamaGymError {
  const location = source === undefined ? "A demonstration" : source;
  const reason = error instanceof Error ? error.message : String(error);
  return new LlamaGymError(
    "DEMONSTRATION_REJECTED",
    `${location}: the reply ${JSON.stringify(completion)} cannot be learnt: ${reason}. Correct it, or leave out what cannot be used (onInvalidLine: "skip").`,
    { cause: error },
  );
}
