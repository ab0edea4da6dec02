import { invalidArgument } from "../../core/errors.js";
import { resolveSettings, selectSettings } from "../../core/settings.js";
import { resolveOptions, UNFILTERED_SAMPLING, type LanguageModel } from "../../generation/index.js";
import {
  callSettings,
  completionSettings,
  invalidActionSettings,
  promptSettings,
  rewardSettings,
  rolloutSettings,
  type RolloutSettings,
} from "../rollout/rollout-settings.js";
import { checkAgentOptions } from "./check-agent-options.js";
import type { AgentOptions } from "./agent-options.js";

/**
 * Defaults of an agent's completions. LlamaGym uses 32 tokens at temperature 0.9 with top-p 0.6;
 * here the trained policy is the sampled one, so sampling is not truncated by default.
 */
const GENERATION_DEFAULTS = { ...UNFILTERED_SAMPLING, maxNewTokens: 32, temperature: 1 };

/** Resolves an agent's rollout settings. @throws INVALID_ARGUMENT for invalid options. */
export function resolveRolloutSettings<Observation, Action>(
  model: LanguageModel,
  options: AgentOptions<Observation, Action>,
): RolloutSettings<Observation, Action> {
  checkAgentOptions(options);
  const resolved = resolveSettings("An Agent", rolloutSettings, selectSettings(rolloutSettings, options));
  const { sampling, maxNewTokens, stop } = resolveOptions({ ...GENERATION_DEFAULTS, ...options.generation });
  const { maxPositions } = model.policy.config;
  const maxContextLength = Math.min(resolved.maxContextLength ?? maxPositions, maxPositions);
  if (options.generation?.maxNewTokens !== undefined && maxNewTokens >= maxContextLength)
    throw invalidArgument(
      `maxNewTokens is ${maxNewTokens}, which leaves no room for a prompt in a context of ${maxContextLength} tokens. Lower it.`,
    );
  // Without a chat template, only the end of the line ends a completion.
  const stopStrings = model.tokenizer.chatTemplates.size > 0 || stop.length > 0 ? stop : ["\n"];
  const { ignoreEos = false } = options.generation ?? {};
  const { fallback = "error", ...invalidAction } = options.invalidAction ?? {};
  return {
    ...selectSettings({ ...rewardSettings, ...callSettings }, resolved),
    completion: {
      ...selectSettings(completionSettings, resolved),
      sampling,
      maxNewTokens,
      stop: stopStrings,
      ignoreEos,
    },
    prompt: { ...selectSettings(promptSettings, resolved), maxContextLength },
    invalidAction: { ...resolveSettings("invalidAction", invalidActionSettings, invalidAction), fallback },
  };
}
