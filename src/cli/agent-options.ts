import type { TextAgent } from "../agent/text-agent.js";
import { makeTextAgent, type ReadableEnv } from "../training/make-agent.js";
import { runOfAdapter } from "../training/run-folder.js";
import { resolveTrainConfig, runSettings, type TrainConfig, type TrainOptions } from "../training/settings.js";
import { modelAdvice } from "./model-advice.js";
import { openModel } from "./open-model.js";
import { openingOptions, modelOption } from "./generation-options.js";
import type { OptionGroups } from "./help.js";
import type { OptionTable, OptionValues } from "./options.js";
import { REPLY_SETTINGS } from "./train-groups.js";
import { givenSettings, settingOptions } from "./setting-options.js";

/** The settings of a run that say how its agent replies, without the temperature. */
const replySettings = Object.fromEntries(REPLY_SETTINGS.map((name) => [name, runSettings[name]]));

const ownOptions = {
  model: { ...modelOption, description: `${modelOption.description}; the model that comes with llamagym by default` },
  ...openingOptions,
  adapter: {
    ...openingOptions.adapter,
    description: "a LoRA adapter to put on the model; one that a run saved replies by that run's settings",
  },
} as const satisfies OptionTable;

/** Which model plays, and how it replies, for commands that only play. */
export const agentOptions = { ...ownOptions, ...settingOptions(replySettings) };

export const agentGroups: OptionGroups = {
  Model: Object.keys(ownOptions),
  Replies: Object.keys(settingOptions(replySettings)),
};

export type AgentValues = OptionValues<typeof ownOptions> & Readonly<Record<string, unknown>>;

/** An agent that is ready to play, and what it plays by. */
export interface OpenAgent {
  readonly agent: TextAgent;
  readonly config: TrainConfig;
}

/**
 * The agent that options describe, for an environment that it can read. What is not given comes from the run that made the
 * adapter, else from the defaults of training. Close its model when done. Throws what opening a model throws.
 */
export async function openAgent(
  values: AgentValues,
  env: string,
  game: ReadableEnv,
  more: Pick<TrainOptions, "temperature" | "seed"> = {},
): Promise<OpenAgent> {
  const trained = values.adapter ?? values.model;
  const run = trained === undefined ? undefined : await runOfAdapter(trained);
  const config = resolveTrainConfig({
    env,
    ...replySettingsOf(run, values),
    ...defined({ model: values.model, ...more }),
    ...givenSettings(replySettings, values),
  });
  const model = await modelAdvice(config.model, () => openModel(config.model, values));
  return { agent: makeTextAgent(model, game, config), config };
}

/** Of a run's settings those of its replies; its pattern only where replies are still held to one. */
function replySettingsOf(run: TrainOptions | undefined, { replies = "pattern" }: AgentValues): Partial<TrainOptions> {
  if (run === undefined) return {};
  const wanted = REPLY_SETTINGS.filter((name) => name !== "replyPattern" || replies === "pattern");
  const names: readonly string[] = ["model", "temperature", ...wanted];
  return Object.fromEntries(Object.entries(run).filter(([name]) => names.includes(name)));
}

function defined<Values extends object>(values: Values): Partial<Values> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<Values>;
}
