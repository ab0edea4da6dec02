import type { Learner, Metrics } from "../algorithms/learner.js";
import type { SftMetrics } from "../algorithms/sft/sft-learner.js";
import { createLearner } from "../algorithms/create-learner.js";
import type { Info } from "../../envs/info.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { LlamaGymError } from "../../core/errors.js";
import type { JsonSchema } from "../../generation/constraints/json-schema/keywords.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { checkObservation } from "../rollout/validate-env-output.js";
import type { Extraction } from "../rollout/extraction.js";
import { Episode } from "../rollout/episode.js";
import { PromptRenderer } from "../rollout/prompt-renderer.js";
import { CompletionSampler } from "../rollout/completion-sampler.js";
import { spreadSparseReward } from "../rollout/spread-sparse-reward.js";
import type { AgentInterface } from "../rollout/agent-interface.js";
import type { RolloutSettings } from "../rollout/rollout-settings.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { stream } from "../../core/random/streams.js";
import type { Tokenizer } from "../../models/text/index.js";
import { computeExtractionShares } from "./extraction/extraction-counter.js";
import type { AgentOptions } from "./agent-options.js";
import { resolveRolloutSettings } from "./resolve-rollout-settings.js";
import type { ReplayBuffer } from "./demonstrations/replay-buffer.js";
import { DemonstrationTrainer, type EncodedDemonstrations } from "./demonstrations/demonstration-trainer.js";
import type { WarmStartCallbacks } from "./demonstrations/warm-start.js";

/** How an episode ended, for `terminateEpisode`. */
export interface TerminateOptions<Observation> {
  /**
   * False leaves the episode out of training; true (the default) trains once a batch is full. Of an episode that was begun after
   * `eval()` nothing is trained.
   */
  readonly train?: boolean;
  /** The last observation of an episode that was cut off, not ended: its value stands for what would have come. */
  readonly finalObservation?: Observation;
  readonly info?: Info;
}

interface CurrentEpisode<Observation, Action> {
  /** Decides how it is played to its end. */
  readonly mode: "train" | "eval";
  readonly agentEpisode: Episode<Observation, Action>;
  readonly turns: Turn[];
}

/**
 * A language model that plays and learns. Extend it with what it is told (`getSystemPrompt`), how an observation reads
 * (`formatObservation`) and what a reply means (`extractAction`), then write the usual loop: `act`, `assignReward`,
 * `terminateEpisode`. Or override `formatPrompt` for prompts of one message.
 *
 * The same agent plays many games at once with `Trainer`; its methods should then depend on their arguments alone.
 */
export abstract class Agent<Observation = unknown, Action = unknown> implements AgentInterface<Observation, Action> {
  readonly model: LanguageModel;
  readonly settings: RolloutSettings<Observation, Action>;
  private readonly renderer: PromptRenderer;
  private readonly samplers: { readonly train: CompletionSampler; readonly eval: CompletionSampler };
  private readonly random: RandomStream;
  private readonly demonstrationTrainer: DemonstrationTrainer;
  private mode: "train" | "eval" = "train";
  /** The episode under way. */
  private episode: CurrentEpisode<Observation, Action> | undefined;
  private trajectories: Trajectory[] = [];
  /** The call that is under way. */
  private pendingCall: string | undefined;
  private learning: Promise<Learner> | undefined;

  /** Throws INVALID_ARGUMENT for options out of range. */
  constructor(
    model: LanguageModel,
    tokenizer?: Tokenizer,
    readonly options: AgentOptions<Observation, Action> = {},
  ) {
    this.model = tokenizer === undefined ? model : model.withTokenizer(tokenizer);
    this.settings = resolveRolloutSettings(this.model, options);
    this.renderer = new PromptRenderer(this.model.tokenizer, this.settings.prompt.completionPrefix);
    const { completion } = this.settings;
    const evalCompletion = {
      ...completion,
      sampling: { ...completion.sampling, temperature: options.evalTemperature ?? 0 },
    };
    this.samplers = {
      train: new CompletionSampler(this.model, completion),
      eval: new CompletionSampler(this.model, evalCompletion),
    };
    const { seed = 0, microBatchTokens } = options;
    this.random = new RandomStream(seed);
    const { renderer, settings } = this;
    const context = { agent: this, renderer, sampler: this.samplers.train, promptSettings: settings.prompt };
    this.demonstrationTrainer = new DemonstrationTrainer(context, options, { seed, microBatchTokens });
  }

  /** The task, said once at the start of a conversation. */
  getSystemPrompt(): string | undefined {
    return undefined;
  }

  /** How an observation reads, as the user's message of a turn. */
  formatObservation(_observation: Observation, _info: Info): string {
    throw new LlamaGymError(
      "AGENT_FAILED",
      `${this.constructor.name} must say how an observation reads: give it a method formatObservation or formatPrompt.`,
    );
  }

  /**
   * The action that a reply means; undefined when it means none (see the option invalidAction). What `extractAction` of
   * `llamagym` gives may be given as it is: metrics then tell how actions are found.
   */
  abstract extractAction(
    response: string,
    observation: Observation,
    info: Info,
  ): MaybePromise<Action | Extraction<Action> | undefined>;

  /** The whole prompt of a turn in one message, without system prompt and earlier turns. */
  formatPrompt?(observation: Observation, info: Info): string;

  /** The replies that are possible: the agent then says one of them. */
  getChoices?(observation: Observation, info: Info): readonly string[] | undefined;

  /**
   * A regular expression: the reply then matches it as a whole, and is trained with its probabilities under it
   * (docs/constrained-decoding.md). Replies have maxNewTokens at most, and `stop` and `ignoreEos` do not count.
   */
  getPattern?(observation: Observation, info: Info): string | RegExp | undefined;

  /** A JSON schema: the reply then is JSON that it allows, and is trained with its probabilities under it. See getPattern. */
  getSchema?(observation: Observation, info: Info): JsonSchema | undefined;

  /** From the next episode on, episodes are recorded and trained. */
  train(): this {
    this.mode = "train";
    return this;
  }

  /** From the next episode on the agent plays without training, greedily unless evalTemperature says otherwise. */
  eval(): this {
    this.mode = "eval";
    return this;
  }

  get isTraining(): boolean {
    return this.mode === "train";
  }

  /** Turns that wait for an update, those of the present episode included. */
  get pendingTurns(): number {
    const current = this.episode?.mode === "train" ? this.episode.turns.length : 0;
    return this.trajectories.reduce((sum, { turns }) => sum + turns.length, current);
  }

  /**
   * The action for an observation; the first call of an episode starts it, the very first one learns the demonstrations of
   * sftWarmStart before. After an error it may be called again: what got no
   * action is not part of the episode.
   * Throws INVALID_STATE while another call is under way, AGENT_NO_ACTION, AGENT_FAILED, CONTEXT_OVERFLOW, and ENV_FAILED for an
   * observation that holds NaN.
   */
  async act(observation: Observation, info: Info = {}): Promise<Action> {
    return this.withMutex("act", async () => {
      checkObservation(observation, "The environment");
      if (this.isTraining) await this.demonstrationTrainer.warmStart({});
      const { mode } = this;
      const episode = this.episode ?? { mode, agentEpisode: this.newEpisode(this.random, mode), turns: [] };
      episode.agentEpisode.observe(observation, info);
      const { action, turn } = await episode.agentEpisode.act();
      episode.turns.push(turn);
      this.episode = episode;
      return action;
    });
  }

  /** What the last action brought; several calls after one action add up. Throws INVALID_STATE before an act, INVALID_ARGUMENT. */
  assignReward(reward: number): void {
    if (typeof reward !== "number" || !Number.isFinite(reward))
      throw new LlamaGymError("INVALID_ARGUMENT", `A reward must be a finite number, not ${String(reward)}.`);
    if (this.pendingCall !== undefined)
      throw new LlamaGymError(
        "INVALID_STATE",
        `assignReward was called while ${this.pendingCall} is under way; await it.`,
      );
    const turn = this.episode?.turns.at(-1);
    if (turn === undefined)
      throw new LlamaGymError(
        "INVALID_STATE",
        "assignReward belongs after act: no action of this episode awaits a reward.",
      );
    turn.reward += reward;
  }

  /**
   * Ends the episode. Once enough is gathered (turns for PPO, episodes for the others: batchSize) it trains on all of them and gives the update's metrics.
   * Throws INVALID_STATE when no turn was played, and what `trainBatch` throws.
   */
  async terminateEpisode({ train = true, finalObservation, info = {} }: TerminateOptions<Observation> = {}): Promise<
    Metrics | undefined
  > {
    return this.withMutex("terminateEpisode", async () => {
      const { episode } = this;
      if (episode === undefined)
        throw new LlamaGymError(
          "INVALID_STATE",
          "terminateEpisode belongs after act: no turn of this episode was played.",
        );
      const { mode, agentEpisode, turns } = episode;
      if (!train || mode === "eval") {
        this.episode = undefined;
        return undefined;
      }
      if (finalObservation !== undefined) agentEpisode.observe(finalObservation, info);
      const bootstrapPrompt = finalObservation === undefined ? undefined : agentEpisode.bootstrapPrompt();
      this.episode = undefined;
      if (this.settings.spreadSparseRewards) spreadSparseReward(turns);
      this.trajectories.push({
        turns,
        end: bootstrapPrompt === undefined ? "terminated" : "truncated",
        bootstrapPrompt,
      });
      return (await this.isBatchFull()) ? this.update() : undefined;
    });
  }

  /** Trains on the episodes that wait, however few. Throws INVALID_STATE when there is none or nothing of the model is trained. */
  async trainBatch(): Promise<Metrics> {
    return this.withMutex("trainBatch", () => this.update());
  }

  /** The best episodes so far, and the demonstrations. */
  get replay(): ReplayBuffer {
    return this.demonstrationTrainer.replay;
  }

  /** Whether each update is followed by one from kept episodes. */
  get onlineSft(): boolean {
    return this.demonstrationTrainer.onlineSft;
  }

  /** From the next update on, episodes are kept and the best of them are learnt again (see the option onlineSft). */
  enableOnlineSft(): this {
    this.demonstrationTrainer.onlineSft = true;
    return this;
  }

  /** From the next update on, only reinforcement is learnt; successes are still kept. */
  disableOnlineSft(): this {
    this.demonstrationTrainer.onlineSft = false;
    return this;
  }

  /**
   * Learns the demonstrations of a JSONL file, with sftSteps updates, and keeps them in the replay buffer. Gives the last update's
   * numbers. Throws FILE_NOT_FOUND, FILE_CORRUPT, and DEMONSTRATION_REJECTED for one that it cannot learn (see onInvalidLine).
   */
  async sftFromJsonl(path: string, callbacks: WarmStartCallbacks = {}): Promise<SftMetrics | undefined> {
    return this.withMutex("sftFromJsonl", () => this.demonstrationTrainer.fromJsonl(path, callbacks));
  }

  /** The demonstrations of sftWarmStart as this agent will learn them; throws what `sftFromJsonl` throws. */
  async loadDemonstrations(): Promise<EncodedDemonstrations> {
    return this.demonstrationTrainer.load();
  }

  /** Learns the demonstrations of sftWarmStart now, if it has not; otherwise the first `act` does, or a Trainer. */
  async warmStart(callbacks: WarmStartCallbacks = {}): Promise<SftMetrics | undefined> {
    return this.withMutex("warmStart", () => this.demonstrationTrainer.warmStart(callbacks));
  }

  /** Saves the adapter (with the value head) or the trained model, and the tokenizer, as `model.savePretrained` does. */
  async save(folder: string): Promise<void> {
    await this.model.savePretrained(folder);
  }

  /** Takes back trained values that `save` wrote; nothing is warmed up then. Throws FILE_NOT_FOUND, WEIGHTS_MISMATCH. */
  async load(folder: string): Promise<void> {
    await this.model.loadTrainedValues(folder);
    this.demonstrationTrainer.skipWarmStart();
  }

  /** The algorithm at work; its graphs are built at the first call. */
  async getLearner(): Promise<Learner> {
    const { algorithm, ppo, grpo, rloo, reinforce, microBatchTokens } = this.options;
    this.learning ??= createLearner(this.model.causalLM, {
      algorithm,
      ppo,
      grpo,
      rloo,
      reinforce,
      microBatchTokens,
      maxCompletionLength: this.settings.completion.maxNewTokens,
      temperature: this.settings.completion.sampling.temperature,
      isTruncatedSampling: isTruncated(this.settings.completion.sampling),
      random: stream(this.options.seed ?? 0, "learner"),
    }).then((algorithm) => this.demonstrationTrainer.wrap(algorithm));
    return this.learning;
  }

  /** A new episode of this agent, drawing from a stream of its own; for those who play many at once. */
  newEpisode(random: RandomStream, mode: "train" | "eval" = "train"): Episode<Observation, Action> {
    return new Episode(this, this.samplers[mode], this.renderer, this.settings, random);
  }

  private async isBatchFull(): Promise<boolean> {
    const { rolloutSpec } = await this.getLearner();
    return rolloutSpec.kind === "turns"
      ? this.pendingTurns >= rolloutSpec.turns
      : this.trajectories.length >= rolloutSpec.groups * rolloutSpec.groupSize;
  }

  private async update(): Promise<Metrics> {
    if (this.trajectories.length === 0)
      throw new LlamaGymError(
        "INVALID_STATE",
        "There is nothing to train on: no episode has ended since the last update.",
      );
    const learner = await this.getLearner();
    const trajectories = this.trajectories.splice(0);
    const metrics = await learner.update(trajectories);
    return { ...metrics, ...computeExtractionShares(trajectories.flatMap(({ turns }) => turns)) };
  }

  /** One call at a time: each builds on what the last one left. */
  private async withMutex<Result>(name: string, call: () => Promise<Result>): Promise<Result> {
    if (this.pendingCall !== undefined)
      throw new LlamaGymError(
        "INVALID_STATE",
        `${name} was called while ${this.pendingCall} is under way; await each call.`,
      );
    this.pendingCall = name;
    try {
      return await call();
    } finally {
      this.pendingCall = undefined;
    }
  }
}

/** Whether tokens are drawn from less than the model's own distribution. */
function isTruncated({ topK, topP, minP, repetitionPenalty }: RolloutSettings["completion"]["sampling"]): boolean {
  return topK > 0 || topP < 1 || minP > 0 || repetitionPenalty !== 1;
}
