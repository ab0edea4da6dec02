import type { AgentDemonstrationOptions } from "../../rl/agent/demonstrations/demonstration-trainer.js";
import { onlineSftSettings } from "../../rl/agent/demonstrations/online-sft-settings.js";
import { agentSettings, textAgentSettings } from "../../rl/agent/agent-settings.js";
import { randomAction } from "../../rl/agent/random-action.js";
import { TextAgent } from "../../rl/agent/text-agent.js";
import type { Env } from "../../envs/env.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { TextInterface } from "../../envs/text-interface.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { selectSettings } from "../../core/settings.js";
import { policySamplingSettings } from "../../generation/generation-options.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { configureAlgorithm } from "./algorithm-settings.js";
import type { TrainConfig } from "./run-settings.js";

/** The parts of an environment that a TextAgent needs. */
export interface TextEnv extends Pick<Env, "actionSpace"> {
  readonly text: TextInterface<unknown, unknown>;
}

/** Opens an environment to read its text interface. @throws as `asTextEnv` */
export async function requireTextEnv(makeEnv: () => MaybePromise<Env>, name: string): Promise<TextEnv> {
  const env = await makeEnv();
  await env.close();
  return asTextEnv(env, name);
}

/** @throws ENV_INVALID for an environment without a text interface. */
export function asTextEnv({ text, actionSpace }: Env, name: string): TextEnv {
  if (text !== undefined) return { text, actionSpace };
  throw new LlamaGymError(
    "ENV_INVALID",
    `${name} has no text interface, which language models need. Give it a \`text\`, or write an Agent for it.`,
  );
}

/** Creates the agent of a run, which takes a random action for an invalid completion. */
export function makeTextAgent(
  model: LanguageModel,
  env: TextEnv,
  config: Omit<TrainConfig, "sftWarmStart"> & Pick<AgentDemonstrationOptions, "sftWarmStart">,
): TextAgent {
  const { maxCompletionLength, maxContextLength, actionMode, actionScoring } = config;
  const context = Math.min(maxContextLength ?? Infinity, model.causalLM.config.maxPositions);
  if (maxCompletionLength >= context)
    throw invalidArgument(
      `\`maxCompletionLength\` is ${maxCompletionLength}, which leaves no room for a prompt in a context of ${context} tokens. Lower it.`,
    );
  const { invalidActionRetries: retries, invalidActionPenalty: penalty } = config;
  return new TextAgent(model, env.text, {
    ...selectSettings({ ...agentSettings, ...textAgentSettings, ...onlineSftSettings }, config),
    actionScoring: actionMode === "scored" ? actionScoring : undefined,
    generation: { ...selectSettings(policySamplingSettings, config), maxNewTokens: maxCompletionLength },
    invalidAction: { retries, penalty, fallback: randomAction(env) },
    sftWarmStart: config.sftWarmStart,
    ...configureAlgorithm(config),
  });
}
