import { errorMessage, LlamaGymError } from "../../../core/errors.js";
import { MAX_RETURN } from "../../../envs/index.js";
import { PromptBuilder } from "../../rollout/prompt-builder.js";
import { toExtraction } from "../../rollout/extraction.js";
import type { PromptRenderer } from "../../rollout/prompt-renderer.js";
import type { CompletionSampler } from "../../rollout/completion-sampler.js";
import { describeViolation } from "../../../generation/index.js";
import type { AgentInterface } from "../../rollout/agent-interface.js";
import { awaitAgent, constraintFor } from "../../rollout/call-agent.js";
import type { RolloutSettings } from "../../rollout/rollout-settings.js";
import type { CallLimit } from "../../rollout/call-limit.js";
import { toReplayTurn, type ReplayEpisode, type ReplayTurn } from "./replay-buffer.js";
import type { Demonstration, DemonstrationTurn } from "../../data/read-demonstrations.js";

/** The agent that is trained: its interface, its prompts and its sampler. */
export interface DemonstrationContext {
  readonly agent: AgentInterface;
  readonly renderer: PromptRenderer;
  readonly sampler: CompletionSampler;
  readonly settings: Pick<RolloutSettings, "prompt"> & CallLimit;
}

/**
 * Encodes a demonstration as the agent's own rollout of it: the same prompts with the same history,
 * and completions as the tokens that the agent would have sampled.
 *
 * @throws DEMONSTRATION_REJECTED for a completion without a valid action, that violates the agent's
 * constraint, or that is too long.
 */
export async function encodeDemonstration(
  demonstration: Demonstration,
  context: DemonstrationContext,
): Promise<ReplayEpisode> {
  const { agent, renderer, settings } = context;
  const isSingleTurn = agent.formatPrompt !== undefined;
  const systemPrompt = isSingleTurn ? undefined : (demonstration.systemPrompt ?? agent.getSystemPrompt());
  const promptBuilder = new PromptBuilder(
    renderer,
    systemPrompt,
    isSingleTurn ? { ...settings.prompt, historyTurns: 0 } : settings.prompt,
  );
  const turns: ReplayTurn[] = [];
  checkReturn(demonstration);
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

function checkReturn({ return: value = 0, source = "A demonstration" }: Demonstration): void {
  if (Math.abs(value) <= MAX_RETURN) return;
  throw new LlamaGymError(
    "DEMONSTRATION_REJECTED",
    `${source}: the return ${value} is invalid: it must be a number from -${MAX_RETURN} to ${MAX_RETURN}.`,
  );
}

async function encodeTurn(
  { observationText, completion, observation = observationText, info = {} }: DemonstrationTurn,
  promptBuilder: PromptBuilder,
  { agent, sampler, settings }: DemonstrationContext,
): Promise<ReplayTurn> {
  const { completionPrefix } = settings.prompt;
  const text = completion.startsWith(completionPrefix) ? completion.slice(completionPrefix.length) : completion;
  const extract = () => agent.extractAction(text, observation, info);
  const extraction = toExtraction(await awaitAgent("extractAction", extract, settings));
  if (extraction.kind === "failure")
    throw new Error(`it contains no action${extraction.reason && ` (${extraction.reason})`}`);
  const constraint = constraintFor(agent, observation, info);
  const prompt = promptBuilder.build((ids) => sampler.maxLength(constraint, ids));
  const encoded = sampler.encodeTurn(text, { prompt, constraint });
  if (encoded === undefined) throw new Error(`it is ${describeViolation(constraint!)}`);
  const { tokens } = encoded;
  const maxLength = sampler.maxLength(constraint, prompt);
  if (tokens.length > maxLength)
    throw new Error(`it has ${tokens.length} tokens, but completions at most ${maxLength} (maxCompletionLength)`);
  return toReplayTurn({ prompt, text, ...encoded });
}

function rejectionError({ source }: Demonstration, { completion }: DemonstrationTurn, error: unknown): LlamaGymError {
  const location = source === undefined ? "A demonstration" : source;
  const reason = errorMessage(error);
  return new LlamaGymError(
    "DEMONSTRATION_REJECTED",
    `${location}: the completion ${JSON.stringify(completion)} is invalid: ${reason}.`,
    { cause: error },
  );
}
