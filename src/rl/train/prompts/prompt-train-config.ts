import { algorithms } from "../../algorithms/algorithms.js";
import type { GrpoConfig, GrpoOptions } from "../../algorithms/grpo/settings.js";
import type { RlooConfig, RlooOptions } from "../../algorithms/rloo/settings.js";
import {
  splitSettings,
  invalidArgument,
  resolveSettings,
  type SettingTable,
  type Settings,
} from "../../../core/settings.js";

const TRL = "TRL 1.16";
const TRANSFORMERS = "TRL 1.16 (Transformers' TrainingArguments)";
const OURS = "ours";

/** Settings of a trainer on prompts besides its algorithm's. */
const promptSettings = {
  temperature: { default: 1, above: 0, description: "of the completions", source: TRL },
  topK: { default: 0, integer: true, min: 0, description: "keep the k most probable tokens; 0 keeps all", source: TRL },
  topP: { default: 1, above: 0, max: 1, description: "keep the most probable tokens up to this mass", source: TRL },
  minP: {
    default: 0,
    min: 0,
    max: 1,
    description: "keep tokens of at least this share of the best one's",
    source: TRL,
  },
  repetitionPenalty: { default: 1, above: 0, description: "how much less likely repeated tokens are", source: TRL },
  ignoreEos: {
    default: false,
    description: "completions go on after the end token, to their full length",
    source: "vLLM's name",
  },
  numTrainEpochs: {
    default: 3,
    above: 0,
    description: "times that the data set is gone through, unless maxSteps says how long",
    source: TRANSFORMERS,
  },
  maxSteps: { default: undefined, integer: true, min: 1, description: "updates", source: TRANSFORMERS },
  shuffleDataset: { default: true, description: "another order of the prompts in each epoch", source: TRL },
  seed: { default: 42, integer: true, min: 0, description: "the same seed gives the same run", source: TRANSFORMERS },
  outputDir: {
    text: true,
    default: undefined,
    description: "folder for metrics, checkpoints and what was trained; without it nothing is kept",
    source: OURS,
  },
  saveSteps: { default: 50, integer: true, min: 1, description: "updates between two checkpoints", source: OURS },
  completionLogSteps: {
    default: 10,
    integer: true,
    min: 1,
    description: "updates between two records of completions",
    source: OURS,
  },
  tensorboard: { default: true, description: "also write TensorBoard's event files", source: OURS },
  rewardTimeoutSeconds: {
    default: 60,
    above: 0,
    description: "seconds that a reward function may take for a batch",
    source: OURS,
  },
  microBatchTokens: {
    default: undefined,
    integer: true,
    min: 1,
    description: "tokens of one forward and backward pass, fewer where rows are long; more need more memory",
    source: OURS,
  },
} as const satisfies SettingTable;

export type PromptTrainConfig = Settings<typeof promptSettings>;

interface AlgorithmTypes {
  readonly grpo: { readonly options: GrpoOptions; readonly config: GrpoConfig };
  readonly rloo: { readonly options: RlooOptions; readonly config: RlooConfig };
}

/** Algorithms that can train on prompts. */
export type PromptAlgorithm = keyof AlgorithmTypes;

/** A trainer's arguments: its own and its algorithm's in one object, as TRL has them. */
export type GrpoTrainerConfig<Algorithm extends PromptAlgorithm> = Partial<PromptTrainConfig> &
  AlgorithmTypes[Algorithm]["options"];

/**
 * A trainer's arguments, all decided. Throws INVALID_ARGUMENT for a name that there is not, with the nearest that there is, and for
 * values that cannot be.
 */
export function resolveTrainerConfig<Algorithm extends PromptAlgorithm>(
  trainer: string,
  algorithm: Algorithm,
  given: GrpoTrainerConfig<Algorithm>,
): { readonly config: PromptTrainConfig; readonly algorithmConfig: AlgorithmTypes[Algorithm]["config"] } {
  const { settings, resolve } = algorithms[algorithm];
  const [promptOptions, algorithmOptions] = splitSettings(
    trainer,
    promptSettings,
    { ...promptSettings, ...settings },
    given,
  );
  const config = resolveSettings(trainer, promptSettings, promptOptions as Partial<PromptTrainConfig>);
  const algorithmConfig = resolve(algorithmOptions);
  if (config.ignoreEos && algorithmConfig.maskTruncatedCompletions) {
    throw invalidArgument(
      `${trainer}'s ignoreEos lets every completion go on until it is cut off, and maskTruncatedCompletions trains none of those. Leave one of them out.`,
    );
  }
  return { config, algorithmConfig };
}
