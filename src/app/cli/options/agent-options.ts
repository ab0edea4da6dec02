import { selectSettings, type GivenSettings, type SettingTable } from "../../../core/settings.js";
import { baseModelSettings } from "../../../models/index.js";
import type { TextAgent } from "../../../rl/agent/index.js";
import { makeTextAgent, type TextEnv } from "../../runs/make-text-agent.js";
import { findRunOfAdapter } from "../../runs/run-folder.js";
import { agentRunSettings, resolveTrainConfig, type TrainConfig, type TrainOptions } from "../../runs/run-settings.js";
import { openModel } from "../open-model.js";
import type { Reporter } from "../reporter.js";
import { withModelAdvice } from "../with-model-advice.js";
import { describeRunDefaults } from "./describe-defaults.js";
import { modelOptions } from "./generation-options.js";

/** The model of an agent and its completions, for commands that do not train. */
export const agentOptions = {
  model: baseModelSettings.model,
  ...modelOptions,
  adapter: {
    ...modelOptions.adapter,
    description: "LoRA adapter to load. An adapter of a run also brings that run's model and completion settings.",
  },
  ...agentRunSettings,
};

/** What an agent brings along from the run of its adapter. */
const agentSettings = {
  model: baseModelSettings.model,
  quantize: baseModelSettings.quantize,
  ...agentRunSettings,
};

export type AgentArgs = GivenSettings<typeof agentOptions>;

/** Adds the defaults of the agent's settings to options that include `agentOptions`. */
export function describeAgentDefaults<Table extends SettingTable>(
  options: Table,
  { model, actionMode }: Pick<AgentArgs, "model" | "actionMode">,
): Table {
  return describeRunDefaults(options, Object.keys(agentRunSettings), { model, actionMode });
}

export interface LoadedAgent {
  readonly agent: TextAgent;
  readonly config: TrainConfig;
}

/**
 * Opens the agent that options describe. Settings that were not given come from the run of the
 * adapter, else from the defaults of training; so does the temperature where it is 0, which only
 * `mode` "eval" samples at. The caller closes the agent's model. Throws what opening a model
 * throws.
 */
export async function openAgent(
  args: Partial<AgentArgs>,
  env: string,
  textEnv: TextEnv,
  reporter: Reporter,
): Promise<LoadedAgent> {
  const { temperature, ...others } = args;
  const checkpoint = args.adapter ?? args.model;
  const run = checkpoint === undefined ? undefined : await findRunOfAdapter(checkpoint);
  if (args.adapter !== undefined && run === undefined) warnOfDefaults(args.adapter, args, reporter);
  const given = {
    env,
    ...selectAgentSettings(run, args),
    ...selectSettings(agentSettings, temperature === 0 ? others : args),
  };
  const config = resolveTrainConfig(given, { envTraits: textEnv });
  const { quantize } = config;
  const model = await withModelAdvice(config.model, () => openModel(config.model, { ...args, quantize }, reporter));
  return { agent: makeTextAgent(model, textEnv, config), config };
}

/** Says that an adapter without its run brings no settings, unless some were given. */
function warnOfDefaults(adapter: string, args: Partial<AgentArgs>, reporter: Reporter): void {
  if (Object.keys(selectSettings(agentRunSettings, args)).length > 0) return;
  reporter.warn(
    `${adapter} is not in a run folder, so completions have the settings of a new run. ` +
      "If it was trained with others, its results will differ: give them, such as --action-mode and --history-turns, or the adapter in the folder of its run.",
  );
}

/**
 * Selects a run's model and the settings of its agent; its pattern only if completions are still
 * constrained to it.
 */
function selectAgentSettings(
  run: Partial<TrainOptions> | undefined,
  { actionMode = "regex" }: Partial<AgentArgs>,
): Partial<TrainOptions> {
  const { actionRegex, ...selected } = selectSettings(agentSettings, run ?? {}) as Partial<TrainOptions>;
  return actionMode === "regex" ? { ...selected, actionRegex } : selected;
}
