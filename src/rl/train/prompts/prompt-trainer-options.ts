import { describeValue } from "../../../core/format.js";
import { isJsonObject } from "../../../core/json.js";
import { checkIsModel, type LanguageModel, policySamplingSettings } from "../../../generation/index.js";
import type { PeftOptions } from "../../../models/adapters/index.js";
import type { TrackerSource } from "../../tracking/index.js";
import type { PromptRow } from "../../data/prompt-dataset.js";
import type { ChatMessage } from "../../../models/text/index.js";
import type { Tool } from "../../tools/index.js";
import type { RewardFunction } from "./reward-scorer.js";
import { algorithms } from "../../algorithms/algorithms.js";
import { checkTeacherOptions, type TeacherOptions } from "../../algorithms/teacher.js";
import type { GrpoConfig, GrpoOptions } from "../../algorithms/grpo/settings.js";
import type { RlooConfig, RlooOptions } from "../../algorithms/rloo/settings.js";
import { invalidArgument } from "../../../core/errors.js";
import {
  boolean,
  checkOptions,
  defineSettings,
  integer,
  number,
  resolveSettings,
  type Settings,
  splitSettings,
  text,
} from "../../../core/settings.js";
import { microBatchTokens } from "../../../models/index.js";
import { completionSettings } from "../../rollout/rollout-settings.js";
import { loopSettings, recordingSettings } from "../trainer-settings.js";

const TRL = "TRL 1.16";
const TRANSFORMERS = "TRL 1.16 (Transformers' TrainingArguments)";

/** Settings of training on prompts, without the algorithm's. */
export const promptSettings = defineSettings({
  ...defineSettings(
    {
      ...defineSettings(policySamplingSettings, { source: TRL }),
      trainedDistribution: completionSettings.trainedDistribution,
      ignoreEos: boolean({
        description: "Continue completions after the end token, to their maximum length.",
        source: "vLLM's name",
      }),
      maxToolCallingIterations: integer({
        min: 1,
        description:
          "Maximum number of times that results of tools are returned to a completion. Default: until it calls none, or is at its maximum length.",
        source: TRL,
      }),
      toolTimeoutSeconds: number({
        default: 60,
        above: 0,
        description: "Timeout of a tool's call, in seconds. A call that takes longer is a failed one.",
      }),
    },
    { group: "Completions", scope: "agent" },
  ),
  ...defineSettings(
    {
      numTrainEpochs: number({
        default: 3,
        above: 0,
        common: true,
        description: "Number of epochs, unless maxSteps is given.",
        source: TRANSFORMERS,
      }),
      maxSteps: integer({ min: 1, common: true, description: "Number of updates.", source: TRANSFORMERS }),
      shuffleDataset: boolean({ default: true, description: "Shuffle the prompts in each epoch.", source: TRL }),
      seed: integer({
        default: 42,
        min: 0,
        common: true,
        description: "Random seed; the same seed gives the same run.",
        source: TRANSFORMERS,
      }),
      rewardTimeoutSeconds: number({
        default: 60,
        above: 0,
        description: "Timeout of a reward function per batch, in seconds.",
      }),
    },
    { group: "Run", scope: "run" },
  ),
  ...loopSettings,
  saveSteps: { ...loopSettings.saveSteps, default: 50 },
  ...recordingSettings,
  tensorboard: boolean({
    default: true,
    group: "Logging and checkpoints",
    scope: "run",
    description: "Write TensorBoard event files.",
  }),
  microBatchTokens: { ...microBatchTokens, group: "Algorithm", scope: "algorithm" },
});

/** Settings of a trainer on prompts, without the algorithm's. */
const trainerSettings = {
  ...promptSettings,
  ...defineSettings({
    outputDir: text({
      description: "Folder for metrics, checkpoints and the trained model. Without it nothing is saved.",
    }),
    evalSteps: integer({
      min: 1,
      description: "Number of updates between evaluations on evalDataset. Default: after the last update only.",
    }),
    numGenerationsEval: integer({
      min: 1,
      description: "Number of completions of each row in an evaluation. Default: numGenerations.",
      source: TRL,
    }),
  }),
} as const;

export type PromptTrainConfig = Settings<typeof promptSettings>;
type PromptTrainerConfig = Settings<typeof trainerSettings>;

interface AlgorithmTypes {
  readonly grpo: { readonly options: GrpoOptions; readonly config: GrpoConfig };
  readonly rloo: { readonly options: RlooOptions; readonly config: RlooConfig };
}

/** Algorithms that can train on prompts. */
export type PromptAlgorithm = keyof AlgorithmTypes;

/** A trainer's arguments: its own and its algorithm's in one object, as TRL has them. */
export type GrpoTrainerConfig<Algorithm extends PromptAlgorithm> = Partial<PromptTrainerConfig> &
  AlgorithmTypes[Algorithm]["options"];

/** The settings of training on prompts and of its algorithm. */
export interface ResolvedPromptConfig<
  Algorithm extends PromptAlgorithm,
  Config extends PromptTrainConfig = PromptTrainConfig,
> {
  readonly config: Config;
  readonly algorithmConfig: AlgorithmTypes[Algorithm]["config"];
}

/**
 * Resolves a trainer's arguments.
 * @throws INVALID_ARGUMENT for an unknown name, suggesting the nearest one, and for values out of
 * range.
 */
export function resolveTrainerConfig<Algorithm extends PromptAlgorithm>(
  trainer: string,
  algorithm: Algorithm,
  given: GrpoTrainerConfig<Algorithm>,
): ResolvedPromptConfig<Algorithm, PromptTrainerConfig> {
  const { settings, resolve } = algorithms[algorithm];
  const [promptOptions, algorithmOptions] = splitSettings(
    trainer,
    trainerSettings,
    { ...trainerSettings, ...settings },
    given,
  );
  const config = resolveSettings(trainer, trainerSettings, promptOptions as Partial<PromptTrainerConfig>);
  const algorithmConfig = resolve(algorithmOptions);
  checkTruncation(config, algorithmConfig);
  return { config, algorithmConfig };
}

/** @throws INVALID_ARGUMENT for settings with which no completion is trained. */
export function checkTruncation(
  { ignoreEos }: Pick<PromptTrainConfig, "ignoreEos">,
  { maskTruncatedCompletions }: Pick<GrpoConfig, "maskTruncatedCompletions">,
): void {
  if (ignoreEos && maskTruncatedCompletions)
    throw invalidArgument(
      "`ignoreEos` truncates every completion, and `maskTruncatedCompletions` excludes truncated ones, so that nothing " +
        "would be trained. Set only one of them.",
    );
}

/** @throws INVALID_ARGUMENT for an algorithm that a teacher's scores of tokens cannot be part of. */
export function checkTeachable(algorithm: PromptAlgorithm): void {
  if (algorithm !== "grpo")
    throw invalidArgument(
      "RLOO has one advantage per completion, which a teacher's scores of tokens cannot be part of. Use grpo.",
    );
}

/** @throws INVALID_ARGUMENT for settings that contradict the tools, or their absence. */
export function checkToolSettings(
  { ignoreEos, maxToolCallingIterations }: Partial<Pick<PromptTrainConfig, "ignoreEos" | "maxToolCallingIterations">>,
  tools: readonly unknown[] | undefined,
): void {
  if (tools === undefined && maxToolCallingIterations !== undefined)
    throw invalidArgument("`maxToolCallingIterations` needs `tools` that the model may call.");
  if (tools !== undefined && ignoreEos === true)
    throw invalidArgument(
      "`ignoreEos` continues completions after a tool call, so that no tool is ever called. Unset it.",
    );
}

interface CommonOptions<Algorithm extends PromptAlgorithm> {
  /**
   * A model with trainable parameters (`getPeftModel`), or the name of a model, which gets an
   * adapter.
   */
  readonly model: LanguageModel | string;
  /**
   * A teacher whose log-probabilities of the completions' tokens are part of their advantages
   * (on-policy distillation); GRPO only. With it, reward functions are optional. Its `hint` is in
   * the teacher's system message, a row's column `hint` behind the last message of the user.
   */
  readonly teacher?: TeacherOptions;
  /** Weight of each function's rewards. Default 1. */
  readonly rewardWeights?: readonly number[];
  /**
   * Rows with a prompt, or the path of a JSONL, JSON or CSV file of them. Other columns are passed
   * to the reward functions.
   */
  readonly trainDataset: string | readonly PromptRow[];
  /**
   * Rows of evaluations, which log the reward of numGenerationsEval completions of each:
   * `eval_reward` and others.
   */
  readonly evalDataset?: string | readonly PromptRow[];
  readonly args?: GrpoTrainerConfig<Algorithm>;
  /**
   * Further variables of the chat template, for prompts of messages, such as { enable_thinking:
   * false }.
   */
  readonly chatTemplateKwargs?: Readonly<Record<string, unknown>>;
  /** Adapter of a model given by name. Default: rank 16 and alpha 32 on all linear layers. */
  readonly peftConfig?: PeftOptions;
  /** Trackers in addition to the files in outputDir. */
  readonly trackers?: readonly TrackerSource[];
  /** Receives warnings that do not stop the run. Default: written to standard error. */
  readonly onWarning?: (message: string) => void;
}

/** Options of a trainer on prompts. */
export interface PromptTrainerOptions<Algorithm extends PromptAlgorithm> extends CommonOptions<Algorithm> {
  /** Functions that score completions; their rewards are added. Required without a teacher. */
  readonly rewardFuncs?: RewardFunction | readonly RewardFunction[];
  readonly tools?: undefined;
}

/** Options of a trainer on prompts whose completions may call tools. */
export interface ToolTrainerOptions<Algorithm extends PromptAlgorithm> extends CommonOptions<Algorithm> {
  /**
   * Functions that score completions, which are lists of messages; their rewards are added.
   * Required without a teacher.
   */
  readonly rewardFuncs?: RewardFunction<readonly ChatMessage[]> | readonly RewardFunction<readonly ChatMessage[]>[];
  /**
   * Tools that the model may call, described to it by the chat template. Their results are part of
   * the completion, but are not trained.
   */
  readonly tools: readonly Tool[];
}

/** Options of a trainer on prompts, with or without tools. */
export type AnyTrainerOptions<Algorithm extends PromptAlgorithm> =
  | PromptTrainerOptions<Algorithm>
  | ToolTrainerOptions<Algorithm>;

/** The options, and whether each is required. */
const required: Readonly<Record<keyof ToolTrainerOptions<PromptAlgorithm>, boolean>> = {
  model: true,
  rewardFuncs: true,
  teacher: false,
  rewardWeights: false,
  tools: false,
  trainDataset: true,
  evalDataset: false,
  args: false,
  chatTemplateKwargs: false,
  peftConfig: false,
  trackers: false,
  onWarning: false,
};

/**
 * @throws INVALID_ARGUMENT for an unknown option, suggesting the nearest one, and for a missing
 * one.
 */
export function checkTrainerOptions(
  trainer: string,
  algorithm: PromptAlgorithm,
  given: AnyTrainerOptions<PromptAlgorithm>,
): void {
  checkOptions(trainer, given, required, "Settings go into args.");
  if (given.teacher !== undefined) {
    checkTeachable(algorithm);
    checkTeacherOptions(given.teacher);
  }
  const names = Object.keys(required) as (keyof typeof required)[];
  const isRequired = (name: keyof typeof required) =>
    required[name] && !(name === "rewardFuncs" && given.teacher !== undefined);
  const missing = names.find((name) => isRequired(name) && (given[name] ?? undefined) === undefined);
  if (missing !== undefined)
    throw invalidArgument(`${trainer} needs ${missing}: new ${trainer}({ model, rewardFuncs, trainDataset, args }).`);
  if (given.rewardWeights !== undefined && given.rewardFuncs === undefined)
    throw invalidArgument("`rewardWeights` needs rewardFuncs, whose weights they are.");
  if (typeof given.model !== "string") checkIsModel("`model` must be the path or id of a model, or", given.model);
  const { trainDataset, evalDataset = [], args } = given;
  if (args !== undefined && (typeof args !== "object" || args === null))
    throw invalidArgument(`\`args\` must be an object of settings, got ${describeValue(args)}.`);
  for (const [name, dataset] of Object.entries({ trainDataset, evalDataset }))
    if (typeof dataset !== "string" && !Array.isArray(dataset))
      throw invalidArgument(`${name} must be a list of rows with a prompt each, or the path of a JSONL file of them.`);
  const { chatTemplateKwargs = {} } = given;
  if (!isJsonObject(chatTemplateKwargs))
    throw invalidArgument(
      `\`chatTemplateKwargs\` must be an object of variables, got ${describeValue(chatTemplateKwargs)}.`,
    );
  if (given.tools !== undefined && !Array.isArray(given.tools))
    throw invalidArgument("`tools` must be a list of { name, description, parameters, execute }.");
  checkToolSettings(args ?? {}, given.tools);
  const evalSetting = (["evalSteps", "numGenerationsEval"] as const).find((name) => args?.[name] !== undefined);
  if (evalSetting !== undefined && given.evalDataset === undefined)
    throw invalidArgument(`\`${evalSetting}\` needs an evalDataset to evaluate.`);
}
