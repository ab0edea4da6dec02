import { resolveSftConfig, sftSettings, type SftConfig } from "../../rl/algorithms/sft/settings.js";
import { resolveSettings, type SettingTable, type Settings } from "../../core/settings.js";
import { checkFrozenWeights, runSettings } from "./run-settings.js";

const OURS = "ours";

const {
  model,
  adapter,
  device,
  threads,
  quantize,
  backwardPrecision,
  tuning,
  r,
  loraAlpha,
  loraDropout,
  targetModules,
  tracker,
} = runSettings;

/** Settings of a fine-tuning run, without those of SFT itself. */
const sftRunSettings = {
  model,
  adapter,
  device,
  threads,
  quantize,
  backwardPrecision,
  tuning,
  r,
  loraAlpha,
  loraDropout,
  targetModules,
  tracker,
  evalData: { text: true, default: undefined, description: "a JSONL file of examples kept apart", source: OURS },
  evalSplit: {
    default: 0,
    min: 0,
    max: 0.99,
    description: "share of the examples that is kept apart where there is no such file",
    source: OURS,
  },
  evalSteps: {
    default: undefined,
    integer: true,
    min: 1,
    description: "updates between two looks at the examples kept apart; once an epoch unless given",
    source: OURS,
  },
  saveSteps: { default: 100, integer: true, min: 1, description: "updates between two checkpoints", source: OURS },
  onInvalidLine: {
    default: "error",
    choices: ["error", "skip"],
    description: "what a line that holds no example does",
    source: OURS,
  },
  prompts: {
    default: "auto",
    choices: ["auto", "chat", "text"],
    description:
      "whether prompt and completion texts are a user's message and the reply, or one text; auto is chat for models with a chat template",
    source: OURS,
  },
} as const satisfies SettingTable;

export const allSftRunSettings = { ...sftRunSettings, ...sftSettings } as const satisfies SettingTable;

/** The resolved settings of a run, as stored in config.json. */
export interface SftRunConfig extends Settings<typeof allSftRunSettings> {
  /** JSONL file of training examples. */
  readonly data: string;
}

export type SftRunOptions = Partial<SftRunConfig> & Pick<SftRunConfig, "data">;

/** Resolves the settings of a run. @throws INVALID_ARGUMENT for unknown names and values out of range. */
export function resolveSftRunConfig({ data, ...given }: SftRunOptions): SftRunConfig {
  const config = { data, ...resolveSettings("A fine-tuning run", allSftRunSettings, given) };
  checkFrozenWeights(config);
  return config;
}

/** Returns the SFT settings of a run. */
export function getSftConfig(config: SftRunConfig): SftConfig {
  const entries = Object.keys(sftSettings).map((name) => [name, config[name as keyof typeof sftSettings]]);
  return resolveSftConfig(Object.fromEntries(entries) as Partial<SftConfig>);
}
