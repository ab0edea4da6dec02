import type { AgentImitationOptions } from "../agent/replay/imitation.js";
import { resolveImitation } from "../agent/replay/settings.js";
import { randomAction } from "../agent/random-action.js";
import { TextAgent } from "../agent/text-agent.js";
import { makeAsync } from "../envs/bridges/make-async.js";
import type { Env } from "../envs/env.js";
import type { MaybePromise } from "../envs/maybe-promise.js";
import type { TextForm } from "../envs/text-form.js";
import { LlamaGymError } from "../errors.js";
import type { LanguageModel } from "../generation/language-model.js";
import { agentAlgorithmOptions } from "./algorithm-settings.js";
import type { TrainConfig } from "./settings.js";

/** What an agent must know of an environment to play it by its text form. */
export interface ReadableEnv extends Pick<Env, "actionSpace"> {
  readonly text: TextForm<unknown, unknown>;
}

/** Makes a run's environments, with the step limit that it asks for. */
export function envMaker({
  env,
  envOptions,
  maxSteps,
}: Pick<TrainConfig, "env" | "envOptions" | "maxSteps">): () => Promise<Env> {
  const limit = maxSteps === undefined ? {} : { maxEpisodeSteps: maxSteps };
  return async () => makeAsync(env, { ...envOptions, ...limit });
}

/** Makes an environment to look at it. Throws as `readable` does. */
export async function readableEnv(makeEnv: () => MaybePromise<Env>, name: string): Promise<ReadableEnv> {
  const env = await makeEnv();
  await env.close();
  return readable(env, name);
}

/** Throws ENV_INVALID for an environment without a text form, which no language model can play. */
export function readable({ text, actionSpace }: Env, name: string): ReadableEnv {
  if (text !== undefined) return { text, actionSpace };
  throw new LlamaGymError(
    "ENV_INVALID",
    `${name} has no text form, so a language model cannot play it; give it a \`text\`, or write an Agent for it.`,
  );
}

/**
 * The agent of a run: it plays by the environment's text form, learns demonstrations first, and takes a random action for a
 * reply that means none.
 */
export function makeTextAgent(
  model: LanguageModel,
  env: ReadableEnv,
  config: Omit<TrainConfig, "sftWarmStart"> & Pick<AgentImitationOptions, "sftWarmStart">,
): TextAgent {
  const { maxNewTokens, temperature, topK, topP, replies, replyPattern, actionScoring, seed, maxTokens } = config;
  const { historyTurns, contextPolicy, maxContext, replyPrefix, shareSparseRewards } = config;
  const { invalidRetries: retries, invalidPenalty: penalty } = config;
  return new TextAgent(model, env.text, {
    generation: { maxNewTokens, temperature, topK, topP },
    historyTurns,
    contextPolicy,
    maxContext,
    replyPrefix,
    shareSparseRewards,
    replies,
    replyPattern,
    actionScoring: replies === "scored" ? actionScoring : undefined,
    seed,
    maxTokens,
    invalidReply: { retries, penalty, fallback: randomAction(env) },
    sftWarmStart: config.sftWarmStart,
    ...resolveImitation(config),
    ...agentAlgorithmOptions(config),
  });
}
