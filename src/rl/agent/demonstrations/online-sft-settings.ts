import {
  boolean,
  choice,
  defineSettings,
  integer,
  number,
  resolveAliases,
  resolveSettings,
  type SettingOptions,
  type Settings,
} from "../../../core/settings.js";

const EDU = "LlamaGymEDU";

/** Settings of the warm start and online SFT, with the source of each default. */
export const onlineSftSettings = defineSettings({
  sftSteps: integer({ default: 100, min: 1, description: "Number of updates of the warm start." }),
  sftBatchSize: integer({ default: 16, min: 1, description: "Number of turns per supervised update." }),
  sftLearningRate: number({ default: 1e-4, min: 0, description: "Learning rate of the warm start.", source: EDU }),
  onlineSft: boolean({
    description: "Follow each update by a supervised one on the best episodes so far and the demonstrations.",
    source: EDU,
  }),
  onlineSftWeight: number({
    default: 0.1,
    min: 0,
    description: "Weight of the online supervised update, as a fraction of sftLearningRate.",
  }),
  replayTopFraction: number({
    aliases: ["topkP"],
    default: 0.2,
    above: 0,
    max: 1,
    description: "Fraction of the replay buffer to train on, by best return.",
    source: EDU,
  }),
  replayCapacity: integer({
    default: 1000,
    min: 1,
    description: "Number of episodes in the replay buffer.",
    source: EDU,
  }),
  onInvalidLine: choice({
    default: "error",
    choices: ["error", "skip"],
    description: "Whether an invalid demonstration fails the run or is skipped.",
  }),
});

/** Resolved settings of online SFT and the warm start. */
export type OnlineSftConfig = Settings<typeof onlineSftSettings>;
/** Settings of online SFT and the warm start. */
export type OnlineSftOptions = SettingOptions<typeof onlineSftSettings>;

/**
 * Resolves these settings and ignores other properties. @throws INVALID_ARGUMENT for values out of
 * range.
 */
export function resolveOnlineSft(options: OnlineSftOptions): OnlineSftConfig {
  const named = resolveAliases(onlineSftSettings, options);
  const values = Object.fromEntries(Object.keys(onlineSftSettings).map((name) => [name, named[name]]));
  return resolveSettings("Online SFT", onlineSftSettings, values as OnlineSftOptions);
}
