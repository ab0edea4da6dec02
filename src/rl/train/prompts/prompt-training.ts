import { invalidArgument } from "../../../core/errors.js";
import { resolveSettings, selectSettings } from "../../../core/settings.js";
import { stream } from "../../../core/random/streams.js";
import { policySamplingSettings, type LanguageModel } from "../../../generation/index.js";
import { algorithms } from "../../algorithms/algorithms.js";
import { createLearner } from "../../algorithms/create-learner.js";
import { createDistillation, NO_HINT, type TeacherOptions } from "../../algorithms/teacher.js";
import type { GroupSpec, Learner } from "../../algorithms/learner.js";
import { hashRows, loadPromptDataset, type PromptDatasetOptions, type PromptRow } from "../../data/prompt-dataset.js";
import { completionSettings, isTruncatedSampling, type CompletionSettings } from "../../rollout/rollout-settings.js";
import { checkNoCheckpoints, restoreLatestCheckpoint } from "../checkpoints.js";
import { runTrainLoop, type TrainLoopOptions, type TrainResult } from "../train-loop.js";
import type { ResumedRun } from "../train-task.js";
import { loopSettings } from "../trainer-settings.js";
import { ENTROPY_FLOOR, TrainingMonitor } from "../../algorithms/training-monitor.js";
import type { Tool, ToolChat } from "../../tools/index.js";
import { PromptRollout } from "./prompt-rollout.js";
import { PromptTask } from "./prompt-task.js";
import type { PromptAlgorithm, ResolvedPromptConfig } from "./prompt-trainer-options.js";
import type { ToolRollout } from "./tool-rollout.js";
import type { RewardScorer } from "./reward-scorer.js";

/** Options of a `PromptTraining`. */
export interface PromptTrainingOptions<Algorithm extends PromptAlgorithm> extends ResolvedPromptConfig<Algorithm> {
  readonly algorithm: Algorithm;
  readonly trainDataset: string | readonly PromptRow[];
  readonly evalDataset?: string | readonly PromptRow[];
  /** Updates between evaluations on `evalDataset`. Default: after the last update only. */
  readonly evalSteps?: number;
  /** Completions of each row in an evaluation. Default: numGenerations. */
  readonly numGenerationsEval?: number | undefined;
  /** Further variables of the chat template, for prompts of messages. */
  readonly chatTemplateKwargs?: Readonly<Record<string, unknown>>;
  /** Tools that the model may call. */
  readonly tools?: readonly Tool[];
  readonly scorer: RewardScorer;
  /** A teacher whose log-probabilities of the completions' tokens are part of their advantages. */
  readonly teacher?: TeacherOptions | undefined;
  readonly onWarning: (message: string) => void;
}

/** Callbacks, tracker and folder of a training on prompts. */
export type PromptTrainingRun = Pick<
  TrainLoopOptions,
  "checkpointDir" | "lock" | "tracker" | "onProgress" | "onUpdate" | "signal"
>;

/** Training of an open model on prompts with reward functions. */
export class PromptTraining {
  private resumed: ResumedRun | undefined;

  private constructor(
    private readonly task: PromptTask,
    private readonly learner: Learner,
    private readonly options: Pick<PromptTrainingOptions<PromptAlgorithm>, "config" | "evalSteps" | "onWarning">,
    /** Number of updates of the run. */
    readonly totalSteps: number,
    /** Number of prompts in the dataset. */
    readonly numPrompts: number,
  ) {}

  /**
   * Loads the dataset and creates the learner. @throws as `loadPromptDataset`, and INVALID_STATE
   * for a model without trainable parameters.
   */
  static async open<Algorithm extends PromptAlgorithm>(
    model: LanguageModel,
    options: PromptTrainingOptions<Algorithm>,
  ): Promise<PromptTraining> {
    const { algorithm, config, algorithmConfig, trainDataset, evalDataset, chatTemplateKwargs, scorer, teacher } =
      options;
    const { seed, shuffleDataset: shuffle, microBatchTokens, temperature, rollouts } = config;
    const { batchSize, numGenerations, maxCompletionLength } = algorithmConfig;
    const toolOptions = await openTools(model, options);
    const tools = toolOptions?.rollout;
    const load = async (
      dataset: string | readonly PromptRow[],
      named: Pick<PromptDatasetOptions, "name" | "teacher">,
    ) =>
      loadPromptDataset(dataset, model, maxCompletionLength, {
        chatTemplateKwargs,
        toolChat: toolOptions?.chat,
        ...named,
      });
    const rows = await load(trainDataset, { teacher });
    const evalRows = evalDataset === undefined ? undefined : await load(evalDataset, { name: "evalDataset" });
    if (teacher?.model === "self" && rows.every(({ teacherTokens }) => teacherTokens === undefined))
      throw invalidArgument(NO_HINT);
    const settings = resolveCompletionSettings(options);
    // GRPO may normalize each function's rewards before weighting them.
    const weights = algorithm === "grpo" ? { rewardWeights: scorer.rewardWeights } : {};
    const learner = await createLearner(model, {
      algorithm: algorithms[algorithm]({ ...algorithmConfig, ...weights }),
      temperature,
      isTruncatedSampling: isTruncatedSampling(settings),
      random: stream(seed, "learner"),
      microBatchTokens,
      distillation:
        teacher &&
        (await createDistillation(teacher, {
          student: model,
          microBatchTokens: microBatchTokens ?? model.policy.microBatchTokens,
          toTeacherPrompt: ({ prompt, teacherPrompt }) => teacherPrompt ?? prompt,
        })),
    });
    const { groups } = learner.rolloutSpec as GroupSpec;
    const totalSteps = config.maxSteps ?? Math.ceil(config.numTrainEpochs * Math.ceil(rows.length / groups));
    const task = new PromptTask({
      model,
      learner,
      rollouts,
      promptRollout: new PromptRollout(model, { rows, settings, scorer, seed, shuffle, tools }),
      evalRollout:
        evalRows &&
        new PromptRollout(model, {
          rows: evalRows,
          settings,
          scorer,
          seed,
          shuffle: false,
          streamName: "evaluation",
          tools,
        }),
      evalGenerations: options.numGenerationsEval ?? numGenerations,
      totalSteps,
      fingerprint: { seed, rows: rows.length, batchSize, numGenerations, dataset: hashRows(rows) },
    });
    return new PromptTraining(task, learner, options, totalSteps, rows.length);
  }

  /**
   * Restores the newest undamaged checkpoint in a folder, if there is one, and returns the number
   * of updates made so far.
   * @throws FILE_CORRUPT, WEIGHTS_MISMATCH, RUN_INCOMPATIBLE
   */
  async resume(checkpointDir: string | undefined): Promise<number> {
    this.resumed = await restoreLatestCheckpoint(checkpointDir, () => this.task, this.options.onWarning);
    return this.resumed?.state.updates ?? 0;
  }

  /**
   * Makes the remaining updates. @throws INVALID_STATE for the folder of another run,
   * REWARD_FAILED, TRAINING_DIVERGED.
   */
  async train(run: PromptTrainingRun = {}): Promise<TrainResult> {
    const { config, evalSteps, onWarning } = this.options;
    const { resumed, task } = this;
    if (resumed === undefined)
      await checkNoCheckpoints(run.checkpointDir, "Resume that run, or choose another folder.");
    return runTrainLoop(task, {
      ...run,
      ...selectSettings(loopSettings, config),
      evalSteps,
      resumed,
      monitor: new TrainingMonitor({ entropyFloor: ENTROPY_FLOOR, onWarning }),
    });
  }

  async release(): Promise<void> {
    await this.learner.release();
  }
}

/** Opens the tools of a training, whose code loads only for them. @throws INVALID_ARGUMENT */
async function openTools(
  model: LanguageModel,
  { tools, config, algorithmConfig, chatTemplateKwargs }: PromptTrainingOptions<PromptAlgorithm>,
): Promise<{ readonly chat: ToolChat; readonly rollout: ToolRollout } | undefined> {
  if (tools === undefined) return undefined;
  const { checkTools, ToolChat } = await import("../../tools/index.js");
  const { ToolRollout } = await import("./tool-rollout.js");
  const caller = checkTools(tools, config.toolTimeoutSeconds);
  const chat = new ToolChat(model, tools, chatTemplateKwargs);
  const { maxCompletionLength } = algorithmConfig;
  const { maxToolCallingIterations = Infinity } = config;
  return { chat, rollout: new ToolRollout({ chat, caller, maxCompletionLength, maxToolCallingIterations }) };
}

function resolveCompletionSettings({
  config,
  algorithmConfig,
}: ResolvedPromptConfig<PromptAlgorithm>): CompletionSettings {
  return {
    ...resolveSettings("A trainer", completionSettings, selectSettings(completionSettings, config)),
    sampling: selectSettings(policySamplingSettings, config),
    maxNewTokens: algorithmConfig.maxCompletionLength,
    stop: [],
    ignoreEos: config.ignoreEos,
  };
}
