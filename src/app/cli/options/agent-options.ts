import { pick, type GivenSettings, type SettingTable } from "../../../core/settings.js";
import type { TextAgent } from "../../../rl/agent/text-agent.js";
import { makeTextAgent, type TextEnv } from "../../runs/make-text-agent.js";
import { findRunOfAdapter } from "../../runs/run-folder.js";
import {
  completionSettings,
  resolveTrainConfig,
  runSettings,
  type TrainConfig,
  type TrainOptions,
} from "../../runs/run-settings.js";
import { openModel } from "../open-model.js";
import type { Reporter } from "../reporter.js";
import { withModelAdvice } from "../with-model-advice.js";
import { describeRunDefaults } from "./describe-defaults.js";
import { modelOptions } from "./generation-options.js";

/** The model of an agent and its completions, for commands that do not train. */
export const agentOptions = {
  model: runSettings.model,
  ...modelOptions,
  adapter: {
    ...modelOptions.adapter,
    description: "LoRA adapter to load. An adapter of a run also brings that run's model and completion settings.",
  },
  ...completionSettings,
};

export type AgentArgs = GivenSettings<typeof agentOptions>;

const COMPLETION_SETTINGS = Object.keys(completionSettings) as (keyof typeof completionSettings)[];

/** Adds the defaults of completion settings to options that include `agentOptions`. */
export function describeAgentDefaults<Table extends SettingTable>(
  options: Table,
  { model }: Pick<AgentArgs, "model">,
): Table {
  return describeRunDefaults(options, COMPLETION_SETTINGS, { model });
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
  const given = {
    env,
    ...selectCompletionSettings(run, args),
    ...withoutUndefined({ model: args.model, ...overrides }),
    ...withoutUndefined(pick(args, ["quantize", ...COMPLETION_SETTINGS])),
  };
  const config = resolveTrainConfig(given, { envTraits: textEnv });
  const { quantize } = config;
  const model = await withModelAdvice(config.model, () => openModel(config.model, { ...args, quantize }, reporter));
  return { agent: makeTextAgent(model, textEnv, config), config };
}

/** Selects a run's model with its quantization, and its completion settings; its pattern only if completions are still constrained to it. */
function selectCompletionSettings(
  run: Partial<TrainOptions> | undefined,
  { actionMode = "regex" }: AgentArgs,
): Partial<TrainOptions> {
  if (run === undefined) return {};
  const selected = COMPLETION_SETTINGS.filter((name) => name !== "actionRegex" || actionMode === "regex");
  const names: readonly string[] = ["model", "quantize", "temperature", ...selected];
  return Object.fromEntries(Object.entries(run).filter(([name]) => names.includes(name)));
}

function withoutUndefined<Values extends object>(values: Values): Partial<Values> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<Values>;
}
