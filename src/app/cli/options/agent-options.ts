import type { TextAgent } from "../../../rl/agent/text-agent.js";
import { makeTextAgent, type TextEnv } from "../../runs/make-text-agent.js";
import { findRunOfAdapter } from "../../runs/run-folder.js";
import { resolveTrainConfig, runSettings, type TrainConfig, type TrainOptions } from "../../runs/run-settings.js";
import { withModelAdvice } from "../with-model-advice.js";
import { openModel } from "../open-model.js";
import { modelOptions, modelIdOption } from "./generation-options.js";
import type { OptionGroups } from "./render-help.js";
import type { OptionTable, OptionValues } from "./parse-args.js";
import { COMPLETION_SETTINGS } from "./train-option-groups.js";
import { explicitSettings, optionsFromSettings } from "./setting-options.js";

/** The settings of a run that say how its agent replies, without the temperature. */
const completionSettings = Object.fromEntries(COMPLETION_SETTINGS.map((name) => [name, runSettings[name]]));

const commandOptions = {
  model: {
    ...modelIdOption,
    description: `${modelIdOption.description}; the model that comes with llamagym by default`,
  },
  ...modelOptions,
  adapter: {
    ...modelOptions.adapter,
    description: "a LoRA adapter to put on the model; one that a run saved replies by that run's settings",
  },
} as const satisfies OptionTable;

/** Which model plays, and how it replies, for commands that only play. */
export const agentOptions = { ...commandOptions, ...optionsFromSettings(completionSettings) };

export const agentOptionGroups: OptionGroups = {
  Model: Object.keys(commandOptions),
  Replies: Object.keys(optionsFromSettings(completionSettings)),
};

export type AgentArgs = OptionValues<typeof commandOptions> & Readonly<Record<string, unknown>>;

/** An agent that is ready to play, and what it plays by. */
export interface LoadedAgent {
  readonly agent: TextAgent;
  readonly config: TrainConfig;
}

/**
 * The agent that options describe, for an environment that it can read. What is not given comes from the run that made the
 * adapter, else from the defaults of training. Close its model when done. Throws what opening a model throws.
 */
export async function openAgent(
  args: AgentArgs,
  env: string,
  textEnv: TextEnv,
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
  const model = await withModelAdvice(config.model, () => openModel(config.model, args));
  return { agent: makeTextAgent(model, textEnv, config), config };
}

/** Of a run's settings those of its replies; its pattern only where replies are still held to one. */
function selectCompletionSettings(
  run: TrainOptions | undefined,
  { replies = "pattern" }: AgentArgs,
): Partial<TrainOptions> {
  if (run === undefined) return {};
  const selected = COMPLETION_SETTINGS.filter((name) => name !== "replyPattern" || replies === "pattern");
  const names: readonly string[] = ["model", "temperature", ...selected];
  return Object.fromEntries(Object.entries(run).filter(([name]) => names.includes(name)));
}

function withoutUndefined<Values extends object>(values: Values): Partial<Values> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<Values>;
}
