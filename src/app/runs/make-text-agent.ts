import type { AgentDemonstrationOptions } from "../../rl/agent/demonstrations/demonstration-trainer.js";
import { resolveOnlineSft } from "../../rl/agent/demonstrations/online-sft-settings.js";
import { DEFAULT_HISTORY_TURNS } from "../../rl/agent/agent-settings.js";
import { randomAction } from "../../rl/agent/random-action.js";
import { TextAgent, type ActionMode } from "../../rl/agent/text-agent.js";
import { openEnv } from "../../envs/index.js";
import "../../text-world/index.js";
import type { Env } from "../../envs/env.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { getChoices, type TextInterface } from "../../envs/text-interface.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { EpisodeJudge } from "../judge/episode-judge.js";
import { JudgedEnv } from "../judge/judged-env.js";
import { configureAlgorithm } from "./algorithm-settings.js";
import type { EnvTraits, TrainConfig } from "./run-settings.js";

/** The parts of an environment that a TextAgent needs. */
export interface TextEnv extends Pick<Env, "actionSpace">, EnvTraits {
  readonly text: TextInterface<unknown, unknown>;
}

/** Returns a function that opens a run's environments with its step limit and, with one, the rewards of a judge. */
export function createEnvFactory(
  { env, envOptions, maxEpisodeSteps }: Pick<TrainConfig, "env" | "envOptions" | "maxEpisodeSteps">,
  judge?: EpisodeJudge,
): () => Promise<Env> {
  const stepLimit = maxEpisodeSteps === undefined ? {} : { maxEpisodeSteps };
  return async () => {
    const opened = await openEnv(env, { ...envOptions, ...stepLimit });
    return judge === undefined ? opened : new JudgedEnv(opened, judge);
  };
}

/** Opens an environment to read its text interface. @throws as `readTextEnv` */
export async function requireTextEnv(makeEnv: () => MaybePromise<Env>, name: string): Promise<TextEnv> {
  const env = await makeEnv();
  try {
    return await readTextEnv(env, name);
  } finally {
    await env.close();
  }
}

/** @throws ENV_INVALID for an environment without a text interface. */
export async function readTextEnv(env: Env, name: string): Promise<TextEnv> {
  const { text, actionSpace, spec } = env;
  if (text !== undefined) {
    const actionMode = await chooseActionMode(env, text);
    return {
      text,
      actionSpace,
      actionMode,
      historyTurns: text.historyTurns ?? DEFAULT_HISTORY_TURNS,
      maxEpisodeSteps: spec?.maxEpisodeSteps,
    };
  }
  throw new LlamaGymError(
    "ENV_INVALID",
    `${name} has no text interface, which language models need. Give it a \`text\`, or write an Agent for it.`,
  );
}

/** Returns "choices" for an environment that lists choices (in its first state, if they vary), "schema" for one with a JSON schema. */
async function chooseActionMode(env: Env, text: TextInterface<unknown, unknown>): Promise<ActionMode> {
  const otherwise = text.jsonSchema === undefined ? "free" : "schema";
  if (typeof text.choices !== "function") return text.choices === undefined ? otherwise : "choices";
  const { observation, info } = await env.reset();
  return (getChoices(text, observation, info) ?? []).length > 0 ? "choices" : otherwise;
}

/** Creates the agent of a run, which takes a random action for an invalid completion. */
export function makeTextAgent(
  model: LanguageModel,
  env: Pick<TextEnv, "text" | "actionSpace">,
  config: Omit<TrainConfig, "sftWarmStart"> & Pick<AgentDemonstrationOptions, "sftWarmStart">,
): TextAgent {
  const {
    maxCompletionLength,
    temperature,
    topK,
    topP,
    minP,
    actionMode,
    actionRegex,
    actionScoring,
    seed,
    microBatchTokens,
  } = config;
  const { historyTurns, contextOverflow, maxContextLength, completionPrefix, spreadSparseRewards } = config;
  const { callTimeoutSeconds } = config;
  const context = Math.min(maxContextLength ?? Infinity, model.causalLM.config.maxPositions);
  if (maxCompletionLength >= context)
    throw invalidArgument(
      `\`maxCompletionLength\` is ${maxCompletionLength}, which leaves no room for a prompt in a context of ${context} tokens. Lower it.`,
    );
  const { invalidActionRetries: retries, invalidActionPenalty: penalty } = config;
  return new TextAgent(model, env.text, {
    generation: { maxNewTokens: maxCompletionLength, temperature, topK, topP, minP },
    trainedDistribution: config.trainedDistribution,
    historyTurns,
    contextOverflow,
    maxContextLength,
    completionPrefix,
    spreadSparseRewards,
    callTimeoutSeconds,
    actionMode,
    actionRegex,
    actionScoring: actionMode === "scored" ? actionScoring : undefined,
    seed,
    microBatchTokens,
    invalidAction: { retries, penalty, fallback: randomAction(env) },
    sftWarmStart: config.sftWarmStart,
    ...resolveOnlineSft(config),
    ...configureAlgorithm(config),
  });
}
