import { invalidArgument } from "../../core/errors.js";
import { checkOptions, checkSettings, resolveAliases, type OtherOptions } from "../../core/settings.js";
import { selectAlgorithm } from "../algorithms/algorithms.js";
import { checkTeacherOptions } from "../algorithms/teacher.js";
import { invalidActionSettings } from "../rollout/rollout-settings.js";
import type { AgentOptions } from "./agent-options.js";
import { agentSettings } from "./agent-settings.js";
import { onlineSftSettings, type OnlineSftOptions } from "./demonstrations/online-sft-settings.js";
import { ReplayBuffer } from "./demonstrations/replay-buffer.js";

const otherOptions: OtherOptions<AgentOptions, typeof agentSettings & OnlineSftOptions> = {
  generation: true,
  actionSchema: true,
  invalidAction: true,
  onWarning: Function,
  algorithm: true,
  sftWarmStart: true,
  replay: true,
  teacher: true,
};

/**
 * @throws INVALID_ARGUMENT for an unknown option, suggesting the nearest one, for an invalid value,
 * and for several algorithms.
 */
export function checkAgentOptions<Observation, Action>(options: AgentOptions<Observation, Action>): void {
  if (typeof options !== "object" || options === null)
    throw invalidArgument(
      `The options of an Agent must be an object, got ${JSON.stringify(options)}. The device is chosen when the model is opened: fromPretrained(name, { device }).`,
    );
  const { invalidAction, sftWarmStart, replay, teacher } = options;
  const named = resolveAliases(onlineSftSettings, options);
  selectAlgorithm(options);
  checkOptions("An Agent", named, { ...agentSettings, ...onlineSftSettings, ...otherOptions });
  checkSettings(agentSettings, options);
  if (invalidAction !== undefined) checkInvalidAction(invalidAction);
  if (sftWarmStart !== undefined && typeof sftWarmStart !== "string" && !Array.isArray(sftWarmStart))
    throw invalidArgument("`sftWarmStart` must be the path of a JSONL file or a list of demonstrations.");
  if (teacher !== undefined) checkTeacherOptions(teacher);
  if (replay !== undefined && !(replay instanceof ReplayBuffer))
    throw invalidArgument("`replay` must be a ReplayBuffer.");
}

function checkInvalidAction(policy: NonNullable<AgentOptions["invalidAction"]>): void {
  checkOptions("invalidAction", policy, { ...invalidActionSettings, fallback: true });
  checkSettings(invalidActionSettings, policy, "invalidAction.");
  const { fallback = "error" } = policy;
  if (fallback !== "error" && typeof fallback !== "function")
    throw invalidArgument(`\`invalidAction.fallback\` must be "error" or a function, got ${String(fallback)}.`);
}
