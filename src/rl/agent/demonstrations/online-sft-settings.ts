import { resolveAliases, resolveSettings, type SettingOptions, type Settings } from "../../../core/settings.js";

const EDU = "LlamaGymEDU";
const OURS = "ours";

/** Settings of the warm start and online SFT, with the source of each default. */
export const onlineSftSettings = {
  sftSteps: { default: 100, integer: true, min: 1, description: "updates of the warm start", source: OURS },
  sftBatchSize: {
    default: 16,
    integer: true,
    min: 1,
    description: "turns of an update from demonstrations or kept episodes",
    source: OURS,
  },
  sftLearningRate: { default: 1e-4, min: 0, description: "learning rate of the warm start", source: EDU },
  onlineSft: {
    default: false,
    description: "after each update, one more from the best episodes so far and the demonstrations",
    source: EDU,
  },
  onlineSftWeight: {
    default: 0.1,
    min: 0,
    description: "weight of that: the share of sftLearningRate that it has",
    source: OURS,
  },
  replayTopFraction: {
    aliases: ["topkP"],
    default: 0.2,
    above: 0,
    max: 1,
    description: "share of the kept episodes, best return first, that is learnt from",
    source: EDU,
  },
  replayCapacity: { default: 1000, integer: true, min: 1, description: "episodes that are kept", source: EDU },
  onInvalidLine: {
    default: "error",
    choices: ["error", "skip"],
    description: "what a demonstration that cannot be used does: it ends the run, or is left out",
    source: OURS,
  },
} as const;

export type OnlineSftConfig = Settings<typeof onlineSftSettings>;
export type OnlineSftOptions = SettingOptions<typeof onlineSftSettings>;

/**
 * Resolves these settings and ignores other properties.
 *
 * @throws INVALID_ARGUMENT for values out of range.
 */
export function resolveOnlineSft(options: OnlineSftOptions): OnlineSftConfig {
  const named = resolveAliases(onlineSftSettings, options);
  const values = Object.fromEntries(Object.keys(onlineSftSettings).map((name) => [name, named[name]]));
  return resolveSettings("Online SFT", onlineSftSettings, values as OnlineSftOptions);
}
