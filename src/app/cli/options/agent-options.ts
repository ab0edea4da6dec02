import type { TextAgent } from "../../../rl/agent/text-agent.js";
import { makeTextAgent, type TextEnv } from "../../runs/make-text-agent.js";
import { findRunOfAdapter } from "../../runs/run-folder.js";
import { resolveTrainConfig, runSettings, type TrainConfig, type TrainOptions } from "../../runs/run-settings.js";
import { openModel } from "../open-model.js";
import type { Reporter } from "../reporter.js";
import { withModelAdvice } from "../with-model-advice.js";
import { describeRunDefaults } from "./describe-defaults.js";
import { modelIdOption, modelOptions } from "./generation-options.js";
import type { OptionTable, OptionValues } from "./option-table.js";
import type { OptionGroups } from "./render-help.js";
import { explicitSettings, optionsFromSettings } from "./setting-options.js";
import { COMPLETION_SETTINGS } from "./train-option-groups.js";

const completionSettings = Object.fromEntries(COMPLETION_SETTINGS.map((name) => [name, runSettings[name]]));

const commandOptions = {
  model: { ...modelIdOption, default: runSettings.model.default },
  ...modelOptions,
  adapter: {
    ...modelOptions.adapter,
    description: "LoRA adapter to load. An adapter of a run also brings that run's model and completion settings.",
  },
} as const satisfies OptionTable;

/** The model of an agent and its completions, for commands that do not train. */
export const agentOptions = { ...commandOptions, ...optionsFromSettings(completionSettings) };

export const agentOptionGroups: OptionGroups = {
  Model: Object.keys(commandOptions),
  Completions: Object.keys(optionsFromSettings(completionSettings)),
};

export type AgentArgs = OptionValues<typeof commandOptions> & Readonly<Record<string, unknown>>;

/** Adds the defaults of completion settings to options that include `agentOptions`. */
export function describeAgentDefaults<Table extends OptionTable>(options: Table, { model }: AgentArgs): Table {
  return describeRunDefaults(options, completionSettings, { model });
}

export interface LoadedAgent {
  readonly agent: TextAgent;
  readonly config: TrainConfig;
}

/**
 * Opens the agent that options describe. Settings that were not given come from the run of the adapter, else from the
 * defaults of training. The caller closes the agent's model. Throws what opening a model throws.
 */
export async function openAgent(
  args: AgentArgs,
  env: string,
  textEnv: TextEnv,
  reporter: Reporter,
  overrides: Pick<TrainOptions, "temperature" | "seed"> = {},
): Promise<LoadedAgent> {
  const checkpoint = args.adapter ?? args.model;
  const run = checkpoint === undefined ? undefined : await findRunOfAdapter(checkpoint);
  const config = resolveTrainConfig({
    env,
    ...selectCompletionSettings(run, args),
    ...withoutUndefined({ model: args.model, ...overrides }),
    ...explicitSettings(completionSettings, args),
  });
  const model = await withModelAdvice(config.model, () => openModel(config.model, args, reporter));
  return { agent: makeTextAgent(model, textEnv, config), config };
}

/** Selects a run's model and completion settings; its pattern only if completions are still constrained to it. */
function selectCompletionSettings(
  run: TrainOptions | undefined,
  { "action-mode": actionMode = "regex" }: AgentArgs,
): Partial<TrainOptions> {
  if (run === undefined) return {};
  const selected = COMPLETION_SETTINGS.filter((name) => name !== "actionRegex" || actionMode === "regex");
  const names: readonly string[] = ["model", "temperature", ...selected];
  return Object.fromEntries(Object.entries(run).filter(([name]) => names.includes(name)));
}

function withoutUndefined<Values extends object>(values: Values): Partial<Values> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<Values>;
}
