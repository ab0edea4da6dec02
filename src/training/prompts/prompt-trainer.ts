import { join } from "node:path";
import { createLearner } from "../../algorithms/create-learner.js";
import type { GroupWish, Learner, Metrics } from "../../algorithms/learner.js";
import { LlamaGymError } from "../../errors.js";
import { writeJson, type JsonObject } from "../../files/index.js";
import { openTrainable } from "../../generation/auto.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { ReplySettings } from "../../rollout/settings.js";
import type { Segment } from "../../rollout/turn.js";
import { RandomStream } from "../../tensor/random.js";
import { combineTrackers, openRunTrackers, type Tracker } from "../../tracking/index.js";
import { latestCheckpoint, readCheckpoint, writeCheckpoint } from "../checkpoint-folder.js";
import { ENTROPY_FLOOR, HealthWatch } from "../health.js";
import { playGroups } from "../play-groups.js";
import { resolveArguments, type PromptAlgorithm, type PromptConfig } from "./arguments.js";
import { openDataset, type EncodedRow } from "./dataset.js";
import { checkOptions, type PromptTrainerOptions } from "./options.js";
import { PromptPlayer, type PlayedSample, type PlayerState } from "./prompt-player.js";
import { RewardScorer } from "./reward-functions.js";

export interface PromptTrainingOptions {
  /** Goes on from the newest checkpoint in outputDir, if there is one. */
  readonly resumeFromCheckpoint?: boolean;
  /** Called after each update. */
  readonly onStep?: (step: number, metrics: Metrics) => void;
  /** Ends the run after the update that is under way, with a checkpoint. */
  readonly signal?: AbortSignal;
}

export interface PromptTrainingResult {
  /** Updates that were made in all. */
  readonly globalStep: number;
  /** Those of the last update. */
  readonly metrics: Metrics;
  /** True when `signal` ended it. */
  readonly isInterrupted: boolean;
}

/** What a checkpoint keeps besides the model and the optimiser. */
interface SavedState {
  readonly step: number;
  readonly tokens: number;
  readonly player: PlayerState;
  readonly learner: unknown;
  /** What must be the same for the run to go on. */
  readonly identity: Identity;
}

interface Identity {
  readonly seed: number;
  readonly rows: number;
  readonly batchSize: number;
  readonly numGenerations: number;
}

/** The learner's random stream; a child of the seed. */
const LEARNER_STREAM = 1;
const CHECKPOINTS = "checkpoints";
const SAMPLES = 4;

/** Trains a model on prompts by what reward functions say of its completions. `GrpoTrainer` and `RlooTrainer` are this with an algorithm. */
export class PromptTrainer<Algorithm extends PromptAlgorithm> {
  readonly config: PromptConfig;
  private readonly algorithmConfig;
  private readonly scorer: RewardScorer;
  private readonly health: HealthWatch;
  private opened: LanguageModel | undefined;
  private step = 0;
  private tokens = 0;
  private metrics: Metrics = {};
  private isRunning = false;

  /** Throws INVALID_ARGUMENT for options that cannot be. */
  constructor(
    name: string,
    private readonly algorithm: Algorithm,
    private readonly options: PromptTrainerOptions<Algorithm>,
  ) {
    checkOptions(name, options);
    const { config, algorithmConfig } = resolveArguments(name, algorithm, options.args ?? {});
    this.config = config;
    this.algorithmConfig = algorithmConfig;
    const warn = (message: string) => this.warn(message);
    this.health = new HealthWatch({ entropyFloor: ENTROPY_FLOOR, warn });
    this.scorer = new RewardScorer(options.rewardFuncs, {
      weights: options.rewardWeights,
      timeLimit: config.rewardTimeLimit,
      warn,
    });
  }

  /** The model that is trained; undefined for one that was named, before it is opened by `train`. */
  get model(): LanguageModel | undefined {
    return this.opened ?? (typeof this.options.model === "string" ? undefined : this.options.model);
  }

  /**
   * Trains for maxSteps updates, or numTrainEpochs. The data set, the prompts' lengths and the output folder are checked before
   * anything is drawn. Throws INVALID_ARGUMENT for resumeFromCheckpoint without outputDir; INVALID_STATE while it trains already, for a model of which nothing is trained, and for an output
   * folder with another run's checkpoints; FILE_CORRUPT, INVALID_ARGUMENT or CONTEXT_OVERFLOW for rows that cannot be trained;
   * REWARD_FAILED, TRAINING_DIVERGED.
   */
  async train(watch: PromptTrainingOptions = {}): Promise<PromptTrainingResult> {
    if (this.isRunning) throw new LlamaGymError("INVALID_STATE", "This trainer is training already; await it.");
    if (watch.resumeFromCheckpoint === true && this.config.outputDir === undefined)
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        "resumeFromCheckpoint needs args.outputDir, where the checkpoints are.",
      );
    this.isRunning = true;
    try {
      const model = await this.openModel();
      const rows = await openDataset(this.options.trainDataset, model, this.algorithmConfig.maxCompletionLength);
      const learner = await this.createLearner(model);
      try {
        return await this.run(model, rows, learner, watch);
      } finally {
        await learner.release();
      }
    } finally {
      this.isRunning = false;
    }
  }

  /** Saves what is trained (and the tokenizer) to a folder, outputDir by default. Throws INVALID_STATE before `train`. */
  async saveModel(folder: string | undefined = this.config.outputDir): Promise<void> {
    const { model } = this;
    if (model === undefined || folder === undefined) {
      const missing = model === undefined ? "there is no model before train()" : "name a folder, or set outputDir";
      throw new LlamaGymError("INVALID_STATE", `Nothing can be saved: ${missing}.`);
    }
    await model.savePretrained(folder);
  }

  /** Closes a model that this trainer opened. */
  async close(): Promise<void> {
    await this.opened?.close();
    this.opened = undefined;
  }

  private async run(
    model: LanguageModel,
    rows: readonly EncodedRow[],
    learner: Learner,
    { resumeFromCheckpoint = false, onStep, signal }: PromptTrainingOptions,
  ): Promise<PromptTrainingResult> {
    const wish = learner.wish as GroupWish;
    const player = this.player(model, rows);
    const resumed = await this.resume(model, learner, player, rows.length, resumeFromCheckpoint);
    const tracker = await this.openTracker(resumed);
    const perEpoch = Math.ceil(rows.length / wish.groups);
    const total = this.config.maxSteps ?? Math.ceil(this.config.numTrainEpochs * perEpoch);
    const isStopped = () => signal?.aborted === true;
    let saved = this.step;
    try {
      while (this.step < total && !isStopped()) {
        await this.update(learner, player, tracker, total);
        onStep?.(this.step, this.metrics);
        if (this.step % this.config.saveSteps === 0 || this.step === total || isStopped()) {
          await this.save(model, learner, player, rows.length);
          saved = this.step;
        }
      }
      if (saved < this.step) await this.save(model, learner, player, rows.length);
      await tracker.close("finished");
    } catch (error) {
      await tracker.close("failed");
      throw error;
    }
    return { globalStep: this.step, metrics: this.metrics, isInterrupted: this.step < total };
  }

  private async update(learner: Learner, player: PromptPlayer, tracker: Tracker, total: number): Promise<void> {
    const start = performance.now();
    const { segments } = await playGroups(player, learner.wish as GroupWish, { newSeed: () => player.nextRow() });
    const played = performance.now();
    const learnt = await learner.update(segments, { done: this.step / total });
    const end = performance.now();
    this.step++;
    const { metrics, samples } = player.takeRecords();
    this.tokens += segments.reduce((sum, { turns }) => sum + turns[0].tokens.length, 0);
    this.metrics = {
      ...completionMetrics(segments),
      ...metrics,
      ...learnt,
      num_tokens: this.tokens,
      epoch: player.epoch,
      "time/rollout": (played - start) / 1000,
      "time/update": (end - played) / 1000,
      step_time: (end - start) / 1000,
    };
    this.health.check(this.metrics);
    await tracker.log(this.step, this.metrics);
    if ((this.step - 1) % this.config.sampleSteps === 0)
      await tracker.samples?.(this.step, samples.slice(0, SAMPLES).map(sampleRow));
  }

  private async openModel(): Promise<LanguageModel> {
    const { model, peftConfig } = this.options;
    if (typeof model !== "string") return model;
    this.opened ??= await openTrainable(model, { peftConfig, valueHead: null });
    return this.opened;
  }

  private async createLearner(model: LanguageModel): Promise<Learner> {
    const { temperature, topK, topP, minP, repetitionPenalty, seed, maxTokens } = this.config;
    return createLearner(model.causalLM, {
      [this.algorithm]: { ...this.algorithmConfig, ...this.weights() },
      temperature,
      isTruncated: topK > 0 || topP < 1 || minP > 0 || repetitionPenalty !== 1,
      random: new RandomStream(seed, [LEARNER_STREAM]),
      maxTokens,
    });
  }

  /** Only GRPO can normalise each function's rewards by themselves, and weights them afterwards. */
  private weights(): { readonly rewardWeights?: readonly number[] } {
    return this.algorithm === "grpo" ? { rewardWeights: this.options.rewardWeights } : {};
  }

  private player(model: LanguageModel, rows: readonly EncodedRow[]): PromptPlayer {
    const { temperature, topK, topP, minP, repetitionPenalty, ignoreEos, seed, shuffleDataset } = this.config;
    const settings: ReplySettings = {
      sampling: { temperature, topK, topP, minP, repetitionPenalty },
      maxNewTokens: this.algorithmConfig.maxCompletionLength,
      stop: [],
      scoring: undefined,
      ignoreEos,
    };
    return new PromptPlayer(model, { rows, settings, scorer: this.scorer, seed, shuffle: shuffleDataset });
  }

  /** Whether it goes on from a checkpoint. */
  private async resume(
    model: LanguageModel,
    learner: Learner,
    player: PromptPlayer,
    rows: number,
    wanted: boolean,
  ): Promise<boolean> {
    const { outputDir } = this.config;
    const folder = outputDir === undefined ? undefined : await latestCheckpoint(join(outputDir, CHECKPOINTS));
    if (folder === undefined) return false;
    if (!wanted) {
      throw new LlamaGymError(
        "INVALID_STATE",
        `${outputDir} holds the checkpoints of a run. Go on with it by train({ resumeFromCheckpoint: true }), or choose another outputDir.`,
      );
    }
    const { optimizer, rest } = await readCheckpoint<SavedState>(folder);
    this.checkIdentity(rest.identity, rows);
    await model.loadTrained(folder);
    await learner.setState({ optimizer, state: rest.learner });
    player.setState(rest.player);
    this.step = rest.step;
    this.tokens = rest.tokens;
    return true;
  }

  private identity(rows: number): Identity {
    const { batchSize, numGenerations } = this.algorithmConfig;
    return { seed: this.config.seed, rows, batchSize, numGenerations };
  }

  private checkIdentity(saved: Identity, rows: number): void {
    const own = this.identity(rows);
    const other = (Object.keys(own) as (keyof Identity)[]).find((name) => own[name] !== saved[name]);
    if (other === undefined) return;
    throw new LlamaGymError(
      "RUN_INCOMPATIBLE",
      `The run in ${this.config.outputDir} has ${other} ${saved[other]}, this one ${own[other]}; it cannot go on with another.`,
    );
  }

  private async save(model: LanguageModel, learner: Learner, player: PromptPlayer, rows: number): Promise<void> {
    const { outputDir } = this.config;
    if (outputDir === undefined) return;
    const { optimizer, state } = await learner.getState();
    const rest: SavedState = {
      step: this.step,
      tokens: this.tokens,
      player: player.getState(),
      learner: state,
      identity: this.identity(rows),
    };
    await writeCheckpoint(join(outputDir, CHECKPOINTS), this.step, { optimizer, rest }, async (folder) =>
      model.savePretrained(folder),
    );
  }

  private async openTracker(isResumed: boolean): Promise<Required<Tracker>> {
    const { outputDir, tensorboard } = this.config;
    const { trackers = [] } = this.options;
    const warn = (message: string) => this.warn(message);
    if (outputDir === undefined) return combineTrackers(trackers, { warn });
    const settings = JSON.parse(JSON.stringify({ ...this.config, ...this.algorithmConfig })) as JsonObject;
    await writeJson(join(outputDir, "config.json"), settings);
    const resumeFrom = isResumed ? this.step : undefined;
    const tracker = openRunTrackers(outputDir, { tensorboard, trackers, warn, resumeFrom });
    await tracker.config(settings);
    return tracker;
  }

  private warn(message: string): void {
    const { warn = (text: string) => void process.stderr.write(`${text}\n`) } = this.options;
    warn(message);
  }
}

function completionMetrics(segments: readonly Segment[]): Metrics {
  const replies = segments.map(({ turns: [turn] }) => turn);
  const lengths = replies.map(({ tokens }) => tokens.length);
  const clipped = replies.filter(({ finishReason }) => finishReason === "length").length;
  return {
    "completions/mean_length": lengths.reduce((sum, length) => sum + length, 0) / lengths.length,
    "completions/min_length": Math.min(...lengths),
    "completions/max_length": Math.max(...lengths),
    "completions/clipped_ratio": clipped / replies.length,
  };
}

function sampleRow({ row, completion, reward }: PlayedSample) {
  const { prompt } = row;
  return { prompt: typeof prompt === "string" ? prompt : JSON.stringify(prompt), completion, reward };
}
