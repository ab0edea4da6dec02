import { invalidArgument } from "../../core/errors.js";
import { checkSettings, resolveAliases, unknownSetting } from "../../core/settings.js";
import { ALGORITHM_NAMES, selectAlgorithm } from "../algorithms/algorithms.js";
import type { AgentOptions } from "./agent-options.js";
import { agentSettings, invalidActionSettings } from "./agent-settings.js";
import { onlineSftSettings } from "./demonstrations/online-sft-settings.js";
import { ReplayBuffer } from "./demonstrations/replay-buffer.js";

/** Options that are no plain values. */
const OTHER_OPTIONS = [
  "generation",
  "actionSchema",
  "invalidAction",
  "algorithm",
  ...ALGORITHM_NAMES,
  "sftWarmStart",
  "replay",
] as const;

/**
 * @throws INVALID_ARGUMENT for an unknown option, suggesting the nearest one, for an invalid value,
 * and for several algorithms.
 */
export function checkAgentOptions<Observation, Action>(options: AgentOptions<Observation, Action>): void {
  if (typeof options !== "object" || options === null)
    throw invalidArgument(
      `The options of an Agent must be an object, got ${JSON.stringify(options)}. The device is chosen when the model is opened: fromPretrained(name, { device }).`,
    );
  const { historyTurns, completionPrefix, invalidAction, algorithm, sftWarmStart, replay } = options;
  checkNames("An Agent", resolveAliases(onlineSftSettings, options), [
    ...Object.keys(agentSettings),
    ...Object.keys(onlineSftSettings),
    ...OTHER_OPTIONS,
  ]);
  checkSettings(agentSettings, {
    ...options,
    historyTurns: historyTurns === Infinity ? undefined : historyTurns,
    completionPrefix: completionPrefix === "" ? undefined : completionPrefix,
  });
  if (invalidAction !== undefined) checkInvalidAction(invalidAction);
  if (algorithm !== undefined && typeof algorithm.create !== "function")
    throw invalidArgument("`algorithm` must be a configured algorithm, such as ppo({ batchSize: 16 }).");
  if (sftWarmStart !== undefined && typeof sftWarmStart !== "string" && !Array.isArray(sftWarmStart))
    throw invalidArgument("`sftWarmStart` must be the path of a JSONL file or a list of demonstrations.");
  if (replay !== undefined && !(replay instanceof ReplayBuffer))
    throw invalidArgument("`replay` must be a ReplayBuffer.");
  selectAlgorithm(options);
}

function checkInvalidAction(policy: NonNullable<AgentOptions["invalidAction"]>): void {
  checkNames("invalidAction", policy, [...Object.keys(invalidActionSettings), "fallback"]);
  checkSettings(invalidActionSettings, policy, "invalidAction.");
  const { fallback = "error" } = policy;
  if (fallback !== "error" && typeof fallback !== "function")
    throw invalidArgument(`\`invalidAction.fallback\` must be "error" or a function, got ${String(fallback)}.`);
}

function checkNames(owner: string, given: object, names: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) throw unknownSetting(owner, names, unknown);
}
