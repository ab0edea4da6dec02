import { checkActionRegex, ACTION_MODES } from "../../rl/agent/text-agent.js";
import { onlineSftSettings } from "../../rl/agent/demonstrations/online-sft-settings.js";
import {
  splitSettings,
  invalidArgument,
  resolveSettings,
  type AliasOptions,
  type SettingTable,
  type Settings,
} from "../../core/settings.js";
import { algorithms } from "../../rl/algorithms/algorithms.js";
import type { ppoSettings } from "../../rl/algorithms/ppo/settings.js";
import { ACTION_SCORINGS } from "../../rl/rollout/rollout-settings.js";
import { checkBackwardPrecision } from "../../models/causal-lm.js";
import { EMBEDDED_MODEL } from "../../models/embedded-model.js";
import { findModel } from "../../models/registry/index.js";
import { allAlgorithmSettings, resolveAlgorithmSettings, type AlgorithmSettings } from "./algorithm-settings.js";
import { ENTROPY_FLOOR } from "../../rl/train/training-monitor.js";
import { getEmbeddedGroupDefaults, getEmbeddedPpoDefaults } from "./embedded-defaults.js";

const OURS = "ours";
const LLAMAGYM = "LlamaGym 0.1.1";

/** Settings of a training run, without those of its algorithm. */
export const runSettings = {
  algorithm: {
    default: "ppo",
    choices: ["ppo", "grpo", "rloo", "reinforce"],
    description: "how it learns; ppo trains a value head too, the others compare episodes",
    source: LLAMAGYM,
  },
  model: {
    text: true,
    default: EMBEDDED_MODEL,
    description: "a model folder, a GGUF file, a Hugging Face id, or the model that comes with llamagym (embedded)",
    source: OURS,
  },
  adapter: { text: true, default: undefined, description: "a LoRA adapter to start from", source: OURS },
  device: {
    default: "auto",
    choices: ["auto", "cpu", "cuda", "webgpu"],
    description: "where to compute",
    source: OURS,
  },
  threads: { default: undefined, integer: true, min: 1, description: "threads of one operation", source: OURS },
  quantize: {
    default: "none",
    choices: ["none", "8", "4"],
    aliases: [
      { name: "loadIn8bit", value: "8" },
      { name: "loadIn4bit", value: "4" },
    ],
    description: "bits of the frozen weights, for less memory",
    source: OURS,
  },
  backwardPrecision: {
    default: "float32",
    choices: ["float32", "int8"],
    description: "how gradients flow back through frozen weights; int8 is faster and less exact",
    source: OURS,
  },
  maxEpisodeSteps: {
    default: undefined,
    integer: true,
    min: 1,
    description: "another step limit of the environment",
    source: OURS,
  },
  episodes: { default: undefined, integer: true, min: 1, description: "episodes of training", source: OURS },
  turns: {
    default: undefined,
    integer: true,
    min: 0,
    description: "turns of training; 0 learns demonstrations alone",
    source: OURS,
  },
  numEnvs: { default: 16, integer: true, min: 1, description: "games played at once", source: OURS },
  seed: { default: 0, integer: true, min: 0, description: "the same seed gives the same run", source: OURS },
  actionMode: {
    default: "free",
    choices: ACTION_MODES,
    description:
      "free replies, replies held to those that the environment lists (choices), these drawn by their scores (scored), or replies held to actionRegex",
    source: OURS,
  },
  actionRegex: {
    text: true,
    default: undefined,
    description: "a regular expression that replies match; its group named action, if any, is the action",
    source: OURS,
  },
  actionScoring: {
    default: "token",
    choices: ACTION_SCORINGS,
    description:
      "what the score of a reply is: the sum of its tokens' log-probabilities, or that over its tokens or words",
    source: "TWOSOME",
  },
  historyTurns: {
    default: 0,
    integer: true,
    min: 0,
    description: "earlier turns that a prompt shows",
    source: "ORLLLaM: one message a step",
  },
  maxCompletionLength: {
    default: 32,
    integer: true,
    min: 1,
    aliases: ["maxNewTokens", "maxTokens"],
    description: "tokens that a reply has at most",
    source: LLAMAGYM,
  },
  temperature: { default: 1, above: 0, description: "of the replies while training", source: "ORLLLaM" },
  topK: {
    default: 0,
    integer: true,
    min: 0,
    description: "keep the k most probable tokens; 0 keeps all",
    source: LLAMAGYM,
  },
  topP: { default: 1, above: 0, max: 1, description: "keep the most probable tokens up to this mass", source: OURS },
  maxContextLength: {
    default: undefined,
    integer: true,
    min: 1,
    description: "tokens of prompt and reply together",
    source: OURS,
  },
  contextOverflow: {
    default: "drop-oldest",
    choices: ["drop-oldest", "error"],
    description: "what to do when the context is full: leave out the oldest turns, or stop",
    source: OURS,
  },
  completionPrefix: {
    text: true,
    default: undefined,
    description: "how every reply begins, such as Action:",
    source: OURS,
  },
  invalidActionRetries: {
    default: 0,
    integer: true,
    min: 0,
    description: "replies drawn again when one means no action; then a random action is taken",
    source: OURS,
  },
  invalidActionPenalty: {
    default: 0,
    min: 0,
    description: "taken from the reward of a reply without an action",
    source: OURS,
  },
  spreadSparseRewards: {
    default: false,
    description: "share a reward that comes only at the end equally between the turns",
    source: "off; LlamaGym 0.1.1 always does",
  },
  tuning: {
    default: "lora",
    choices: ["lora", "full"],
    description: "what is trained: an adapter, or all weights",
    source: LLAMAGYM,
  },
  r: { default: 16, integer: true, min: 1, description: "rank of the adapter", source: LLAMAGYM },
  loraAlpha: { default: 32, above: 0, description: "scale of the adapter, over its rank", source: LLAMAGYM },
  loraDropout: { default: 0, min: 0, max: 0.99, description: "dropout before the adapter", source: OURS },
  targetModules: {
    text: true,
    default: "all-linear",
    description: "modules with an adapter, by names with commas between; all-linear is those of the layers",
    source: OURS,
  },
  valueHead: {
    default: "linear",
    choices: ["linear", "mlp"],
    description: "layers of the value head",
    source: LLAMAGYM,
  },
  valueHeadDropout: { default: 0, min: 0, max: 0.99, description: "dropout before the value head", source: OURS },
  microBatchTokens: {
    default: undefined,
    integer: true,
    min: 1,
    description: "tokens of one forward and backward pass, fewer where rows are long; more need more memory",
    source: OURS,
  },
  entropyFloor: {
    default: ENTROPY_FLOOR,
    min: 0,
    description: "entropy in nats below which there is a warning; 0 for none",
    source: OURS,
  },
  saveSteps: { default: 10, integer: true, min: 1, description: "updates between two checkpoints", source: OURS },
  tensorboard: { default: true, description: "also write TensorBoard's event files", source: OURS },
  tracker: {
    text: true,
    default: undefined,
    description: "a JavaScript module that exports a tracker (docs/tracking.md)",
    source: OURS,
  },
  wandbProject: {
    text: true,
    default: undefined,
    description: "keep the run in this Weights & Biases project too; WANDB_PROJECT says the same",
    source: "LlamaGymEDU",
  },
  wandbMode: {
    default: undefined,
    choices: ["online", "offline", "disabled"],
    description: "whether Weights & Biases gets the run now, or from files later",
    source: "WANDB_MODE",
  },
  evalEpisodes: {
    default: 0,
    integer: true,
    min: 0,
    description: "episodes that are played greedily before and after training, for the table at its end",
    source: OURS,
  },
  sftWarmStart: {
    text: true,
    default: undefined,
    description: "learn demonstrations first: a JSONL file, or a number of episodes by the environment's expert",
    source: "LlamaGymEDU",
  },
  ...onlineSftSettings,
} as const satisfies SettingTable;

/** All settings of a training run, including those of the algorithms. */
export const trainSettings: SettingTable = { ...allAlgorithmSettings, ...runSettings };

/** The resolved settings of a run, as stored in config.json. */
export interface TrainConfig extends Settings<typeof runSettings>, Omit<AlgorithmSettings, keyof typeof runSettings> {
  readonly env: string;
  readonly envOptions: Readonly<Record<string, unknown>>;
}

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
    trainSettings,
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
  if (headSetting !== undefined && !algorithms[algorithm].hasCritic)
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
