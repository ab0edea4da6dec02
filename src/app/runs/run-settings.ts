import { checkActionRegex, ACTION_MODES } from "../../rl/agent/text-agent.js";
import { onlineSftSettings } from "../../rl/agent/demonstrations/online-sft-settings.js";
import { invalidArgument } from "../../core/errors.js";
import {
  splitSettings,
  resolveSettings,
  type AliasOptions,
  type SettingTable,
  type Settings,
} from "../../core/settings.js";
import { findAlgorithm, isBuiltInAlgorithm } from "./load-algorithm.js";
import type { ppoSettings } from "../../rl/algorithms/ppo/settings.js";
import { ACTION_SCORINGS } from "../../rl/rollout/rollout-settings.js";
import { checkBackwardPrecision } from "../../models/causal-lm.js";
import { EMBEDDED_MODEL } from "../../models/embedded-model.js";
import { findModel } from "../../models/registry/index.js";
import { allAlgorithmSettings, resolveAlgorithmSettings, type AlgorithmSettings } from "./algorithm-settings.js";
import { DEFAULT_CALL_TIMEOUT_SECONDS } from "../../rl/rollout/with-timeout.js";
import { ENTROPY_FLOOR } from "../../rl/train/training-monitor.js";
import { getEmbeddedGroupDefaults, getEmbeddedPpoDefaults } from "./embedded-defaults.js";

const OURS = "ours";
const LLAMAGYM = "LlamaGym 0.1.1";

/** Settings of a training run, without those of its algorithm. */
export const runSettings = {
  algorithm: {
    text: true,
    default: "ppo",
    description:
      "Learning algorithm: ppo, grpo, rloo, reinforce, or a JavaScript file that exports one. ppo trains a value head; the others compare episodes.",
    source: LLAMAGYM,
  },
  model: {
    text: true,
    default: EMBEDDED_MODEL,
    description: "Model: a folder, a GGUF file, a Hugging Face id, or embedded, the model included in llamagym.",
    source: OURS,
  },
  adapter: { text: true, default: undefined, description: "LoRA adapter to start from.", source: OURS },
  device: {
    default: "auto",
    choices: ["auto", "cpu", "cuda", "webgpu"],
    description: "Execution device.",
    source: OURS,
  },
  threads: {
    default: undefined,
    integer: true,
    min: 1,
    description: "Number of threads per operation. Default: all cores.",
    source: OURS,
  },
  quantize: {
    default: "none",
    choices: ["none", "8", "4"],
    aliases: [
      { name: "loadIn8bit", value: "8" },
      { name: "loadIn4bit", value: "4" },
    ],
    description: "Bits of the frozen weights; fewer bits take less memory.",
    source: OURS,
  },
  backwardPrecision: {
    default: "float32",
    choices: ["float32", "int8"],
    description: "Precision of gradients through frozen weights. int8 is faster and less exact.",
    source: OURS,
  },
  maxEpisodeSteps: {
    default: undefined,
    integer: true,
    min: 1,
    description: "Maximum number of steps per episode. Default: the environment's limit.",
    source: OURS,
  },
  episodes: { default: undefined, integer: true, min: 1, description: "Number of training episodes.", source: OURS },
  turns: {
    default: undefined,
    integer: true,
    min: 0,
    description: "Number of training turns. 0 trains on demonstrations only.",
    source: OURS,
  },
  numEnvs: {
    default: 16,
    integer: true,
    min: 1,
    description: "Number of environments stepped in parallel.",
    source: OURS,
  },
  seed: {
    default: 0,
    integer: true,
    min: 0,
    description: "Random seed; the same seed gives the same run.",
    source: OURS,
  },
  actionMode: {
    default: "free",
    choices: ACTION_MODES,
    description:
      "How actions are generated: free text, text constrained to the environment's choices, choices sampled by their score, or text constrained to actionRegex.",
    source: OURS,
  },
  actionRegex: {
    text: true,
    default: undefined,
    description: "Regular expression that completions match. A group named action captures the action.",
    source: OURS,
  },
  actionScoring: {
    default: "token",
    choices: ACTION_SCORINGS,
    description: "Score of a choice: the sum of its token log-probabilities, or the mean per token or word.",
    source: "TWOSOME",
  },
  historyTurns: {
    default: 0,
    integer: true,
    min: 0,
    description: "Number of earlier turns in a prompt.",
    source: "ORLLLaM: one message a step",
  },
  maxCompletionLength: {
    default: 32,
    integer: true,
    min: 1,
    aliases: ["maxNewTokens", "maxTokens"],
    description: "Maximum number of tokens per completion.",
    source: LLAMAGYM,
  },
  temperature: { default: 1, above: 0, description: "Sampling temperature during training.", source: "ORLLLaM" },
  topK: {
    default: 0,
    integer: true,
    min: 0,
    description: "Sample from the k most probable tokens. 0 disables it.",
    source: LLAMAGYM,
  },
  topP: {
    default: 1,
    above: 0,
    max: 1,
    description: "Sample from the most probable tokens up to this cumulative probability.",
    source: OURS,
  },
  maxContextLength: {
    default: undefined,
    integer: true,
    min: 1,
    description: "Maximum number of tokens of a prompt and its completion. Default: the model's context.",
    source: OURS,
  },
  contextOverflow: {
    default: "drop-oldest",
    choices: ["drop-oldest", "error"],
    description: "What to do when the context is full: drop the oldest turns, or fail.",
    source: OURS,
  },
  completionPrefix: {
    text: true,
    default: undefined,
    description: "Text that every completion begins with (for example Action:).",
    source: OURS,
  },
  invalidActionRetries: {
    default: 0,
    integer: true,
    min: 0,
    description: "Number of times a completion without an action is resampled before a random action is taken.",
    source: OURS,
  },
  invalidActionPenalty: {
    default: 0,
    min: 0,
    description: "Penalty subtracted from the reward of a completion without an action.",
    source: OURS,
  },
  spreadSparseRewards: {
    default: false,
    description: "Spread a reward that comes only at the end evenly over the turns.",
    source: "off; LlamaGym 0.1.1 always does",
  },
  tuning: {
    default: "lora",
    choices: ["lora", "full"],
    description: "Trained parameters: a LoRA adapter, or all weights.",
    source: LLAMAGYM,
  },
  r: { default: 16, integer: true, min: 1, description: "Rank of the LoRA adapter.", source: LLAMAGYM },
  loraAlpha: {
    default: 32,
    above: 0,
    description: "Scale of the LoRA adapter, divided by its rank.",
    source: LLAMAGYM,
  },
  loraDropout: { default: 0, min: 0, max: 0.99, description: "Dropout of the LoRA adapter.", source: OURS },
  targetModules: {
    text: true,
    default: "all-linear",
    description:
      "Comma-separated names of the modules with an adapter. all-linear selects the linear modules of all layers.",
    source: OURS,
  },
  valueHead: {
    default: "linear",
    choices: ["linear", "mlp"],
    description: "Architecture of the value head.",
    source: LLAMAGYM,
  },
  valueHeadDropout: { default: 0, min: 0, max: 0.99, description: "Dropout of the value head.", source: OURS },
  microBatchTokens: {
    default: undefined,
    integer: true,
    min: 1,
    description:
      "Maximum number of tokens per forward and backward pass. Lower it if memory runs out. Default: what fits into about 2 GB.",
    source: OURS,
  },
  entropyFloor: {
    default: ENTROPY_FLOOR,
    min: 0,
    description: "Warn when the entropy falls below this, in nats. 0 disables it.",
    source: OURS,
  },
  saveSteps: {
    default: 10,
    integer: true,
    min: 1,
    description: "Number of updates between checkpoints.",
    source: OURS,
  },
  completionLogSteps: {
    default: 10,
    integer: true,
    min: 1,
    description: "Number of updates between logged completions.",
    source: OURS,
  },
  numLoggedCompletions: {
    default: 3,
    integer: true,
    min: 0,
    description: "Number of completions logged at a time.",
    source: "TRL 1.16",
  },
  callTimeoutSeconds: {
    default: DEFAULT_CALL_TIMEOUT_SECONDS,
    min: 0,
    description: "Time limit of a call of the environment. 0 disables it; an attached debugger suspends it.",
    source: OURS,
  },
  tensorboard: { default: true, description: "Write TensorBoard event files.", source: OURS },
  tracker: {
    text: true,
    default: undefined,
    description: "JavaScript module that exports a tracker (docs/tracking.md).",
    source: OURS,
  },
  wandbProject: {
    text: true,
    default: undefined,
    description: "Weights & Biases project to log to. Also set by WANDB_PROJECT.",
    source: "LlamaGymEDU",
  },
  wandbMode: {
    default: undefined,
    choices: ["online", "offline", "disabled"],
    description: "Whether to send the run to Weights & Biases, or write it to files for later.",
    source: "WANDB_MODE",
  },
  evalEpisodes: {
    default: 0,
    integer: true,
    min: 0,
    description: "Number of greedy evaluation episodes before and after training.",
    source: OURS,
  },
  sftWarmStart: {
    text: true,
    default: undefined,
    description: "Demonstrations to train on first: a JSONL file, or a number of episodes by the environment's expert.",
    source: "LlamaGymEDU",
  },
  ...onlineSftSettings,
} as const satisfies SettingTable;

/** All settings of a training run, including those of the algorithms. */
export const trainSettings: SettingTable = { ...allAlgorithmSettings, ...runSettings };

/** Returns the settings of a training run by name; with a loaded algorithm only its own and the run's. */
export function trainSettingsOf(algorithm: string = runSettings.algorithm.default): SettingTable {
  if (isBuiltInAlgorithm(algorithm)) return trainSettings;
  const { settings, title } = findAlgorithm(algorithm);
  const duplicate = Object.keys(settings).find(
    (name) => Object.hasOwn(runSettings, name) && name !== "maxCompletionLength",
  );
  if (duplicate !== undefined)
    throw invalidArgument(`${title} has a setting ${duplicate}, which is a setting of every run. Rename it.`);
  return { ...settings, ...runSettings };
}

/** The resolved settings of a run, as stored in config.json. */
export interface TrainConfig extends Settings<typeof runSettings>, Omit<AlgorithmSettings, keyof typeof runSettings> {
  readonly env: string;
  readonly envOptions: Readonly<Record<string, unknown>>;
}

/** Options of a training run: `env` and any setting. */
export type TrainOptions = Partial<TrainConfig> &
  AliasOptions<typeof runSettings & typeof ppoSettings> &
  Pick<TrainConfig, "env">;

/** Defaults of the embedded model for any algorithm; the other defaults are for large models. */
const EMBEDDED_DEFAULTS = {
  maxCompletionLength: 8,
  sftBatchSize: 64,
  sftLearningRate: 3e-3,
} as const satisfies Partial<TrainConfig>;

const DEFAULT_EPISODES = 5000;

/**
 * Resolves the settings of a run.
 * @throws INVALID_ARGUMENT for an unknown name, suggesting the nearest one, for settings of another algorithm, for values out of
 * range, and for an unsupported actionRegex.
 */
export function resolveTrainConfig({ env, envOptions = {}, ...given }: TrainOptions): TrainConfig {
  const isEmbedded = (given.model ?? EMBEDDED_MODEL) === EMBEDDED_MODEL;
  const lengthDefaults =
    given.episodes === undefined && given.turns === undefined ? { episodes: DEFAULT_EPISODES } : {};
  const [runOptions, algorithmOptions]: [Partial<Settings<typeof runSettings>>, AlgorithmSettings] = splitSettings(
    "A run",
    runSettings,
    trainSettingsOf(given.algorithm),
    given,
  );
  const modelDefaults = isEmbedded ? EMBEDDED_DEFAULTS : (findModel(runOptions.model!)?.model.defaults ?? {});
  const runConfig = resolveSettings("A run", runSettings, { ...lengthDefaults, ...modelDefaults, ...runOptions });
  checkConflicts(runConfig);
  checkActionRegex(runConfig);
  const algorithmConfig = resolveAlgorithmSettings(runConfig.algorithm, {
    ...getAlgorithmDefaults(runConfig, algorithmOptions, isEmbedded),
    ...algorithmOptions,
  });
  return { env, envOptions, ...runConfig, ...algorithmConfig };
}

/** @throws INVALID_ARGUMENT for settings that contradict each other or would have no effect. */
function checkConflicts(run: Settings<typeof runSettings>): void {
  const { algorithm, tuning } = run;
  const isChanged = (name: keyof typeof runSettings) => run[name] !== runSettings[name].default;
  const headSetting = (["valueHead", "valueHeadDropout"] as const).find(isChanged);
  if (headSetting !== undefined && !findAlgorithm(algorithm).hasCritic)
    throw invalidArgument(`${headSetting} is for algorithms with a value head, but ${algorithm} has none. Remove it.`);
  const adapterSetting = (["r", "loraAlpha", "loraDropout", "targetModules"] as const).find(isChanged);
  if (adapterSetting !== undefined && tuning === "full")
    throw invalidArgument(
      `${adapterSetting} is a setting of the adapter, but tuning "full" trains no adapter. Remove one of them.`,
    );
  checkFrozenWeights(run);
}

/** @throws INVALID_ARGUMENT for settings of frozen weights that contradict each other, or without frozen weights. */
export function checkFrozenWeights({
  device,
  tuning,
  quantize,
  backwardPrecision,
}: Pick<Settings<typeof runSettings>, "device" | "tuning" | "quantize" | "backwardPrecision">): void {
  checkBackwardPrecision({ device, quantize: parseQuantizeBits(quantize), backwardPrecision });
  if (backwardPrecision === "int8" && tuning === "full")
    throw invalidArgument(
      'backwardPrecision "int8" is for frozen weights, and tuning "full" freezes none. Leave one of them out.',
    );
}

/** Parses the setting `quantize`. */
export function parseQuantizeBits(setting: Settings<typeof runSettings>["quantize"]): 8 | 4 | undefined {
  return setting === "none" ? undefined : setting === "8" ? 8 : 4;
}

/** Returns defaults of the algorithm's settings that depend on the run. */
function getAlgorithmDefaults(
  { algorithm, maxCompletionLength, actionMode }: Pick<TrainConfig, "algorithm" | "maxCompletionLength" | "actionMode">,
  given: AlgorithmSettings,
  isEmbedded: boolean,
): AlgorithmSettings {
  if (!isBuiltInAlgorithm(algorithm))
    return Object.hasOwn(findAlgorithm(algorithm).settings, "maxCompletionLength") ? { maxCompletionLength } : {};
  if (algorithm !== "ppo")
    return {
      maxCompletionLength,
      ...(isEmbedded ? getEmbeddedGroupDefaults({ algorithm, actionMode }, given) : {}),
    };
  const embeddedDefaults = isEmbedded ? getEmbeddedPpoDefaults({ actionMode }) : undefined;
  const { batchSize } = given;
  const smallBatch =
    batchSize === undefined ? {} : { miniBatchSize: Math.min(batchSize, embeddedDefaults?.miniBatchSize ?? 16) };
  return { ...embeddedDefaults, ...smallBatch };
}
