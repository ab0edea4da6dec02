import { checkOptions } from "../../core/settings.js";
import { describeValue } from "../../core/format.js";
import { LazyPromise } from "../../core/promise-cache.js";
import type { Distillation, Learner, Metrics } from "../algorithms/learner.js";
import type { SftMetrics } from "../algorithms/sft/sft-learner.js";
import { createLearner } from "../algorithms/create-learner.js";
import { createDistillation, createHintInserter } from "../algorithms/teacher.js";
import { type Info, SchemaSpace, isReward, REWARD_RULE } from "../../envs/index.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { checkIsModel, type JsonSchema, type LanguageModel } from "../../generation/index.js";
import { checkObservation } from "../rollout/validate-env-output.js";
import type { Extraction } from "../rollout/extraction.js";
import { Episode } from "../rollout/episode.js";
import { PromptRenderer } from "../rollout/prompt-renderer.js";
import { CompletionSampler } from "../rollout/completion-sampler.js";
import { spreadSparseReward } from "../rollout/spread-sparse-reward.js";
import type { AgentInterface } from "../rollout/agent-interface.js";
import { isTruncatedSampling, type RolloutSettings } from "../rollout/rollout-settings.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { stream } from "../../core/random/streams.js";
import type { Tokenizer } from "../../models/text/index.js";
import { computeExtractionShares } from "./extraction/extraction-counter.js";
import { CallGuard } from "./call-guard.js";
import { LoopMonitor } from "./loop-monitor.js";
import type { AgentOptions, TerminateOptions } from "./agent-options.js";
import { resolveRolloutSettings } from "./resolve-rollout-settings.js";
import type { ReplayBuffer } from "./demonstrations/replay-buffer.js";
import { DemonstrationTrainer, type EncodedDemonstrations } from "./demonstrations/demonstration-trainer.js";
import type { WarmStartCallbacks, WarmStartState } from "./demonstrations/warm-start.js";

interface CurrentEpisode<Observation, Action> {
  readonly mode: "train" | "eval";
  readonly agentEpisode: Episode<Observation, Action>;
  readonly turns: Turn[];
}

/**
 * A language model as an agent in a Gymnasium environment. Subclasses define the task
 * (`getSystemPrompt`), the text of an observation (`formatObservation`) and the action of a
 * completion (`extractAction`); then write the usual loop of `act`, `assignReward` and
 * `terminateEpisode`. Override `formatPrompt` instead for prompts of one message.
 *
 * With `Trainer`, one agent acts in many environments at once; its methods should then depend only
 * on their arguments.
 */
export abstract class Agent<Observation = unknown, Action = unknown> implements AgentInterface<Observation, Action> {
  readonly model: LanguageModel;
  readonly settings: RolloutSettings<Observation, Action>;
  private readonly actionSpace: SchemaSpace<Action> | undefined;
  private readonly renderer: PromptRenderer;
  private readonly samplers: { readonly train: CompletionSampler; readonly eval: CompletionSampler };
  private readonly random: RandomStream;
  private readonly demonstrationTrainer: DemonstrationTrainer;
  private mode: "train" | "eval" = "train";
  private episode: CurrentEpisode<Observation, Action> | undefined;
  private trajectories: Trajectory[] = [];
  private readonly calls = new CallGuard();
  private readonly monitor: LoopMonitor;
  private readonly learner = new LazyPromise(() => this.createLearner());

  /** @throws INVALID_ARGUMENT for invalid options. */
  constructor(
    model: LanguageModel,
    tokenizer?: Tokenizer,
    readonly options: AgentOptions<Observation, Action> = {},
  ) {
    checkModelArguments(model, tokenizer);
    this.model = tokenizer === undefined ? model : model.withTokenizer(tokenizer);
    this.settings = resolveRolloutSettings(this.model, options);
    const { actionSchema } = options;
    this.actionSpace = actionSchema === undefined ? undefined : new SchemaSpace(actionSchema);
    this.renderer = new PromptRenderer(this.model.tokenizer, this.settings.prompt.completionPrefix);
    const { completion } = this.settings;
    const sampling = { ...completion.sampling, temperature: options.evalTemperature ?? 0 };
    this.samplers = {
      train: new CompletionSampler(this.model, completion),
      eval: new CompletionSampler(this.model, { ...completion, sampling }),
    };
    const { seed = 0, microBatchTokens } = options;
    this.monitor = new LoopMonitor(options.onWarning);
    this.random = stream(seed, "act");
    const context = { agent: this, renderer: this.renderer, sampler: this.samplers.train, settings: this.settings };
    this.demonstrationTrainer = new DemonstrationTrainer(context, options, { seed, microBatchTokens });
  }

  /**
   * Returns the system message of an episode; `seat` is the agent's in a game of several players.
   */
  getSystemPrompt(_seat?: number): string | undefined {
    return undefined;
  }

  /** Returns the user message of a turn. */
  formatObservation(_observation: Observation, _info: Info): string {
    throw missingMethod(this, "formatObservation or formatPrompt.");
  }

  /**
   * Returns the action of a completion, or undefined if there is none (see the option
   * `invalidAction`); or a result of `extractAction` from `llamagym`, so that metrics count how
   * actions were found. By default reads it by `actionSchema`.
   */
  extractAction(
    response: string,
    _observation: Observation,
    _info: Info,
  ): MaybePromise<Action | Extraction<Action> | undefined> {
    if (this.actionSpace !== undefined) return this.actionSpace.parse(response);
    throw missingMethod(this, "extractAction, or have the option actionSchema.");
  }

  /** Returns the prompt of a turn as one message, without system prompt and earlier turns. */
  formatPrompt?(observation: Observation, info: Info): string;

  /**
   * Returns the allowed completions; the completion is then one of them. By default those of
   * `actionSchema`.
   */
  getChoices(_observation: Observation, _info: Info): readonly string[] | undefined {
    return this.actionSpace?.choices;
  }

  /**
   * Returns a regular expression that the whole completion must match; it is trained with its
   * probabilities under that constraint (docs/constrained-decoding.md). `stop` and `ignoreEos` then
   * have no effect.
   */
  getPattern?(observation: Observation, info: Info): string | RegExp | undefined;

  /**
   * Returns a JSON schema that the completion must conform to. See getPattern. By default
   * `actionSchema`.
   */
  getSchema(_observation: Observation, _info: Info): JsonSchema | undefined {
    return this.actionSpace?.choices === undefined ? this.actionSpace?.jsonSchema : undefined;
  }

  /**
   * Returns what follows the observation in a teacher's prompt alone, such as the next step of a
   * solution. By default `info.hint`, if it is a text.
   */
  getTeacherHint(_observation: Observation, { hint }: Info): string | undefined {
    return typeof hint === "string" ? hint : undefined;
  }

  /** Records and trains episodes from the next one on. */
  train(): this {
    this.mode = "train";
    return this;
  }

  /**
   * Stops training from the next episode on; completions are greedy unless `evalTemperature` is
   * set.
   */
  eval(): this {
    this.mode = "eval";
    return this;
  }

  get isTraining(): boolean {
    return this.mode === "train";
  }

  /** Number of turns collected for the next update, including the current episode's. */
  get pendingTurns(): number {
    const current = this.episode?.mode === "train" ? this.episode.turns.length : 0;
    return this.trajectories.reduce((sum, { turns }) => sum + turns.length, current);
  }

  /**
   * Returns the action for an observation; the first call of an episode starts it. The first call
   * of all trains on the demonstrations of `sftWarmStart`. May be called again after an error; the
   * failed call is not part of the episode.
   * @throws INVALID_STATE during another call, AGENT_NO_ACTION, AGENT_FAILED, CONTEXT_OVERFLOW, and
   * ENV_FAILED for an observation with NaN.
   */
  async act(observation: Observation, info: Info = {}): Promise<Action> {
    return this.calls.run("act", async () => {
      checkObservation(observation, "The environment");
      if (this.isTraining) await this.startWarm({});
      const { mode } = this;
      const episode = this.episode ?? { mode, agentEpisode: this.newEpisode(this.random, mode), turns: [] };
      episode.agentEpisode.observe(observation, info);
      const { action, turn } = await episode.agentEpisode.act();
      episode.turns.push(turn);
      this.episode = episode;
      if (mode === "train") this.monitor.checkEpisode(episode.turns.length);
      return action;
    });
  }

  /**
   * Adds a reward to the last action; several calls add up. @throws INVALID_STATE before `act`,
   * INVALID_ARGUMENT.
   */
  assignReward(reward: number): void {
    if (!isReward(reward)) throw invalidArgument(`The reward ${describeValue(reward)} must be ${REWARD_RULE}.`);
    this.calls.check("assignReward");
    const turn = this.requireEpisode("assignReward").turns.at(-1);
    if (turn === undefined) return;
    const sum = turn.reward + reward;
    if (!isReward(sum)) throw invalidArgument(`The sum ${String(sum)} of an action's rewards must be ${REWARD_RULE}.`);
    turn.reward = sum;
  }

  /**
   * Ends the episode. Trains and returns the update's metrics once a batch is full (`batchSize`
   * turns for PPO, episodes for groups).
   * @throws INVALID_STATE before `act`, and what `trainBatch` throws.
   */
  async terminateEpisode(options: TerminateOptions<Observation> = {}): Promise<Metrics | undefined> {
    return this.calls.run("terminateEpisode", async () => {
      checkOptions("terminateEpisode", options, { train: Boolean, finalObservation: true, info: Object });
      const { train = true, finalObservation, info = {} } = options;
      const { mode, agentEpisode, turns } = this.requireEpisode("terminateEpisode");
      if (!train || mode === "eval") {
        this.episode = undefined;
        return undefined;
      }
      if (finalObservation !== undefined) agentEpisode.observe(finalObservation, info);
      const bootstrapPrompt = finalObservation === undefined ? undefined : agentEpisode.bootstrapPrompt();
      this.episode = undefined;
      if (this.settings.spreadSparseRewards) spreadSparseReward(turns);
      const end = bootstrapPrompt === undefined ? "terminated" : "truncated";
      this.trajectories.push({ turns, end, bootstrapPrompt });
      return (await this.isBatchFull()) ? this.update() : undefined;
    });
  }

  /**
   * Trains on the collected episodes, however few. @throws INVALID_STATE without episodes or
   * trainable parameters.
   */
  async trainBatch(): Promise<Metrics> {
    return this.calls.run("trainBatch", () => this.update());
  }

  /** Best episodes so far, and the demonstrations. */
  get replay(): ReplayBuffer {
    return this.demonstrationTrainer.replay;
  }

  /** Whether each update is followed by one on the best episodes. */
  get onlineSft(): boolean {
    return this.demonstrationTrainer.onlineSft;
  }

  /**
   * Stores episodes and trains on the best of them from the next update on (see the option
   * `onlineSft`).
   */
  enableOnlineSft(): this {
    this.demonstrationTrainer.onlineSft = true;
    return this;
  }

  /** Stops training on stored episodes; successful ones are still stored. */
  disableOnlineSft(): this {
    this.demonstrationTrainer.onlineSft = false;
    return this;
  }

  /**
   * Trains for `sftSteps` updates on demonstrations of a JSONL file, and stores them for replay.
   * Returns the last update's metrics.
   * @throws FILE_NOT_FOUND, FILE_CORRUPT, and DEMONSTRATION_REJECTED for an invalid demonstration
   * (see `onInvalidLine`).
   */
  async sftFromJsonl(path: string, callbacks: WarmStartCallbacks = {}): Promise<SftMetrics | undefined> {
    return this.calls.run("sftFromJsonl", () => this.demonstrationTrainer.fromJsonl(path, callbacks));
  }

  /** Encodes the demonstrations of `sftWarmStart`; throws what `sftFromJsonl` throws. */
  async loadDemonstrations(): Promise<EncodedDemonstrations> {
    return this.demonstrationTrainer.load();
  }

  /**
   * Trains on the demonstrations of `sftWarmStart`, once; otherwise the first `act` or a Trainer
   * does. A Trainer gives `state`, which keeps the state for a resumed run.
   */
  async warmStart(callbacks: WarmStartCallbacks = {}, state?: WarmStartState): Promise<SftMetrics | undefined> {
    return this.calls.run("warmStart", () => this.startWarm(callbacks, state));
  }

  /**
   * Saves the adapter (with the value head) or the trained model, and the tokenizer, as
   * `model.savePretrained` does.
   */
  async save(folder: string): Promise<void> {
    await this.model.savePretrained(folder);
  }

  /**
   * Loads trained values written by `save`; skips the warm start. @throws FILE_NOT_FOUND,
   * WEIGHTS_MISMATCH.
   */
  async load(folder: string): Promise<void> {
    await this.model.loadTrainedValues(folder);
    this.demonstrationTrainer.skipWarmStart();
  }

  /** Returns the algorithm's learner, creating it at the first call. */
  getLearner(): Promise<Learner> {
    return this.learner.get();
  }

  /** Creates the learner first: what it refuses does not cost a warm start. */
  private async startWarm(callbacks: WarmStartCallbacks, state?: WarmStartState): Promise<SftMetrics | undefined> {
    if (this.demonstrationTrainer.isDue) await this.getLearner();
    return this.demonstrationTrainer.warmStart(callbacks, state);
  }

  private async createLearner(): Promise<Learner> {
    const { completion } = this.settings;
    const learner = await createLearner(this.model, {
      ...this.options,
      maxCompletionLength: completion.maxNewTokens,
      temperature: completion.sampling.temperature,
      isTruncatedSampling: isTruncatedSampling(completion),
      random: stream(this.options.seed ?? 0, "learner"),
      distillation: await this.createDistillation(),
    });
    return this.demonstrationTrainer.wrap(learner);
  }

  private async createDistillation(): Promise<Distillation | undefined> {
    const { teacher, microBatchTokens = this.model.policy.microBatchTokens } = this.options;
    if (teacher === undefined) return undefined;
    const insertHints = createHintInserter(
      {
        systemPrompt: this.getSystemPrompt(),
        render: (systemPrompt, observation) => this.renderer.renderSingleTurn(systemPrompt, observation),
      },
      teacher.hint,
    );
    return createDistillation(teacher, {
      student: this.model,
      microBatchTokens,
      toTeacherPrompt: ({ prompt, teacherHint }) => insertHints(prompt, teacherHint),
    });
  }

  /**
   * Creates an episode with its own random stream, for parallel environments; `sampler` replaces
   * that of the mode.
   */
  newEpisode(
    random: RandomStream,
    mode: "train" | "eval" = "train",
    { sampler = this.samplers[mode], seat }: { readonly sampler?: CompletionSampler; readonly seat?: number } = {},
  ): Episode<Observation, Action> {
    return new Episode(this, sampler, this.renderer, this.settings, random, seat);
  }

  private requireEpisode(method: string): CurrentEpisode<Observation, Action> {
    if (this.episode !== undefined) return this.episode;
    throw new LlamaGymError(
      "INVALID_STATE",
      `${method}() was called before act(). Call act() at least once per episode.`,
    );
  }

  private async isBatchFull(): Promise<boolean> {
    const { rolloutSpec } = await this.getLearner();
    return rolloutSpec.kind === "turns"
      ? this.pendingTurns >= rolloutSpec.turns
      : this.trajectories.length >= rolloutSpec.groups * rolloutSpec.groupSize;
  }

  private async update(): Promise<Metrics> {
    if (this.trajectories.length === 0)
      throw new LlamaGymError("INVALID_STATE", "There is nothing to train on: no episode ended since the last update.");
    const learner = await this.getLearner();
    const trajectories = this.trajectories.splice(0);
    const { rolloutSpec } = learner;
    const groupSize = rolloutSpec.kind === "turns" ? undefined : rolloutSpec.groupSize;
    this.monitor.checkTrajectories(trajectories, groupSize);
    const metrics = await learner.update(await learner.prepare(trajectories));
    this.monitor.checkMetrics(metrics);
    return { ...metrics, ...computeExtractionShares(trajectories.flatMap(({ turns }) => turns)) };
  }
}

const missingMethod = ({ constructor }: object, expected: string): LlamaGymError =>
  new LlamaGymError("AGENT_FAILED", `${constructor.name || "The agent"} must implement ${expected}`);

/** @throws INVALID_ARGUMENT for what JavaScript may pass instead of a model and a tokenizer. */
function checkModelArguments(model: unknown, tokenizer: unknown): void {
  checkIsModel("The first argument of an Agent is", model);
  if (tokenizer !== undefined && !isTokenizer(tokenizer))
    throw invalidArgument(
      `The second argument of an Agent is a tokenizer, or undefined for the model's, got ${describeValue(tokenizer)}. Options are the third.`,
    );
}

const isTokenizer = (value: unknown): boolean => typeof (value as Partial<Tokenizer> | null)?.encode === "function";
