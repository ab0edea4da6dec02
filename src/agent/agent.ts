import type { Learner, Metrics } from "../algorithms/learner.js";
import type { SftStats } from "../algorithms/sft/trainer.js";
import { createLearner } from "../algorithms/create-learner.js";
import type { Info } from "../envs/info.js";
import type { MaybePromise } from "../envs/maybe-promise.js";
import { LlamaGymError } from "../errors.js";
import type { JsonSchema } from "../generation/constraints/json-schema/keywords.js";
import type { LanguageModel } from "../generation/language-model.js";
import { checkObservation } from "../rollout/checks.js";
import type { Extraction } from "../rollout/extraction.js";
import { Playthrough } from "../rollout/playthrough.js";
import { PromptWriter } from "../rollout/prompt-writer.js";
import { Replier } from "../rollout/replier.js";
import { shareSparseReward } from "../rollout/rewards.js";
import type { Role } from "../rollout/role.js";
import type { PlaySettings } from "../rollout/settings.js";
import type { Segment, Turn } from "../rollout/turn.js";
import { RandomStream } from "../tensor/random.js";
import type { Tokenizer } from "../text/index.js";
import { extractionShares } from "./extraction/counter.js";
import type { AgentOptions } from "./options.js";
import { playSettings } from "./play-settings.js";
import type { ReplayBuffer } from "./replay/buffer.js";
import { Imitation, type Lesson } from "./replay/imitation.js";
import type { WarmStartWatch } from "./replay/warm-start.js";

/** How an episode ended, for `terminateEpisode`. */
export interface EpisodeEnd<Observation> {
  /**
   * False leaves the episode out of training; true (the default) trains once a batch is full. Of an episode that was begun after
   * `eval()` nothing is trained.
   */
  readonly train?: boolean;
  /** The last observation of an episode that was cut off, not ended: its value stands for what would have come. */
  readonly truncatedAt?: Observation;
  readonly info?: Info;
}

interface Episode<Observation, Action> {
  /** Decides how it is played to its end. */
  readonly mode: "train" | "eval";
  readonly play: Playthrough<Observation, Action>;
  readonly turns: Turn[];
}

/**
 * A language model that plays and learns. Extend it with what it is told (`getSystemPrompt`), how an observation reads
 * (`formatObservation`) and what a reply means (`extractAction`), then write the usual loop: `act`, `assignReward`,
 * `terminateEpisode`. Or override `formatPrompt` for prompts of one message.
 *
 * The same agent plays many games at once with `Trainer`; its methods should then depend on their arguments alone.
 */
export abstract class Agent<Observation = unknown, Action = unknown> implements Role<Observation, Action> {
  readonly model: LanguageModel;
  readonly settings: PlaySettings<Observation, Action>;
  private readonly writer: PromptWriter;
  private readonly repliers: { readonly train: Replier; readonly eval: Replier };
  private readonly random: RandomStream;
  private readonly imitation: Imitation;
  private mode: "train" | "eval" = "train";
  /** The episode under way. */
  private episode: Episode<Observation, Action> | undefined;
  private segments: Segment[] = [];
  /** The call that is under way. */
  private busyWith: string | undefined;
  private learning: Promise<Learner> | undefined;

  /** Throws INVALID_ARGUMENT for options out of range. */
  constructor(
    model: LanguageModel,
    tokenizer?: Tokenizer,
    readonly options: AgentOptions<Observation, Action> = {},
  ) {
    this.model = tokenizer === undefined ? model : model.withTokenizer(tokenizer);
    this.settings = playSettings(this.model, options);
    this.writer = new PromptWriter(this.model.tokenizer, this.settings.dialogue.replyPrefix);
    const { reply } = this.settings;
    const evalReply = { ...reply, sampling: { ...reply.sampling, temperature: options.evalTemperature ?? 0 } };
    this.repliers = { train: new Replier(this.model, reply), eval: new Replier(this.model, evalReply) };
    const { seed = 0, maxTokens } = options;
    this.random = new RandomStream(seed);
    const { writer, settings } = this;
    const learning = { role: this, writer, replier: this.repliers.train, dialogue: settings.dialogue };
    this.imitation = new Imitation(learning, options, { seed, maxTokens });
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
   * The action that a reply means; undefined when it means none (see the option invalidReply). What `extractAction` of
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
  get waitingTurns(): number {
    const current = this.episode?.mode === "train" ? this.episode.turns.length : 0;
    return this.segments.reduce((sum, { turns }) => sum + turns.length, current);
  }

  /**
   * The action for an observation; the first call of an episode starts it, the very first one learns the demonstrations of
   * sftWarmStart before. After an error it may be called again: what got no
   * action is not part of the episode.
   * Throws INVALID_STATE while another call is under way, AGENT_NO_ACTION, AGENT_FAILED, CONTEXT_OVERFLOW, and ENV_FAILED for an
   * observation that holds NaN.
   */
  async act(observation: Observation, info: Info = {}): Promise<Action> {
    return this.exclusively("act", async () => {
      checkObservation(observation, "The environment");
      if (this.isTraining) await this.imitation.warmStart({});
      const { mode } = this;
      const episode = this.episode ?? { mode, play: this.playthrough(this.random, mode), turns: [] };
      episode.play.observe(observation, info);
      const { action, turn } = await episode.play.reply();
      episode.turns.push(turn);
      this.episode = episode;
      return action;
    });
  }

  /** What the last action brought; several calls after one action add up. Throws INVALID_STATE before an act, INVALID_ARGUMENT. */
  assignReward(reward: number): void {
    if (typeof reward !== "number" || !Number.isFinite(reward))
      throw new LlamaGymError("INVALID_ARGUMENT", `A reward must be a finite number, not ${String(reward)}.`);
    if (this.busyWith !== undefined)
      throw new LlamaGymError(
        "INVALID_STATE",
        `assignReward was called while ${this.busyWith} is under way; await it.`,
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
  async terminateEpisode({ train = true, truncatedAt, info = {} }: EpisodeEnd<Observation> = {}): Promise<
    Metrics | undefined
  > {
    return this.exclusively("terminateEpisode", async () => {
      const { episode } = this;
      if (episode === undefined)
        throw new LlamaGymError(
          "INVALID_STATE",
          "terminateEpisode belongs after act: no turn of this episode was played.",
        );
      const { mode, play, turns } = episode;
      if (!train || mode === "eval") {
        this.episode = undefined;
        return undefined;
      }
      if (truncatedAt !== undefined) play.observe(truncatedAt, info);
      const nextPrompt = truncatedAt === undefined ? undefined : play.finalPrompt();
      this.episode = undefined;
      if (this.settings.sharesSparseRewards) shareSparseReward(turns);
      this.segments.push({ turns, end: nextPrompt === undefined ? "terminated" : "truncated", nextPrompt });
      return (await this.isBatchFull()) ? this.update() : undefined;
    });
  }

  /** Trains on the episodes that wait, however few. Throws INVALID_STATE when there is none or nothing of the model is trained. */
  async trainBatch(): Promise<Metrics> {
    return this.exclusively("trainBatch", () => this.update());
  }

  /** The best episodes so far, and the demonstrations. */
  get replay(): ReplayBuffer {
    return this.imitation.replay;
  }

  /** Whether each update is followed by one from kept episodes. */
  get onlineSft(): boolean {
    return this.imitation.onlineSft;
  }

  /** From the next update on, episodes are kept and the best of them are learnt again (see the option onlineSft). */
  enableOnlineSft(): this {
    this.imitation.onlineSft = true;
    return this;
  }

  /** From the next update on, only reinforcement is learnt; successes are still kept. */
  disableOnlineSft(): this {
    this.imitation.onlineSft = false;
    return this;
  }

  /**
   * Learns the demonstrations of a JSONL file, with sftSteps updates, and keeps them in the replay buffer. Gives the last update's
   * numbers. Throws FILE_NOT_FOUND, FILE_CORRUPT, and DEMONSTRATION_REFUSED for one that it cannot learn (see brokenLines).
   */
  async sftFromJsonl(path: string, watch: WarmStartWatch = {}): Promise<SftStats | undefined> {
    return this.exclusively("sftFromJsonl", () => this.imitation.fromJsonl(path, watch));
  }

  /** The demonstrations of sftWarmStart as this agent will learn them; throws what `sftFromJsonl` throws. */
  async loadDemonstrations(): Promise<Lesson> {
    return this.imitation.load();
  }

  /** Learns the demonstrations of sftWarmStart now, if it has not; otherwise the first `act` does, or a Trainer. */
  async warmStart(watch: WarmStartWatch = {}): Promise<SftStats | undefined> {
    return this.exclusively("warmStart", () => this.imitation.warmStart(watch));
  }

  /** Saves the adapter (with the value head) or the trained model, and the tokenizer, as `model.savePretrained` does. */
  async save(folder: string): Promise<void> {
    await this.model.savePretrained(folder);
  }

  /** Takes back trained values that `save` wrote; nothing is warmed up then. Throws FILE_NOT_FOUND, WEIGHTS_MISMATCH. */
  async load(folder: string): Promise<void> {
    await this.model.loadTrained(folder);
    this.imitation.skipWarmStart();
  }

  /** The algorithm at work; its graphs are built at the first call. */
  async learner(): Promise<Learner> {
    const { ppo, grpo, rloo, reinforce, maxTokens } = this.options;
    this.learning ??= createLearner(this.model.causalLM, {
      ppo,
      grpo: grpo && { maxCompletionLength: this.settings.reply.maxNewTokens, ...grpo },
      rloo,
      reinforce,
      maxTokens,
      temperature: this.settings.reply.sampling.temperature,
      isTruncated: isTruncated(this.settings.reply.sampling),
      random: new RandomStream(this.options.seed ?? 0, [1]),
    }).then((algorithm) => this.imitation.beside(algorithm));
    return this.learning;
  }

  /** A new episode of this agent, drawing from a stream of its own; for those who play many at once. */
  playthrough(random: RandomStream, mode: "train" | "eval" = "train"): Playthrough<Observation, Action> {
    return new Playthrough(this, this.repliers[mode], this.writer, this.settings, random);
  }

  private async isBatchFull(): Promise<boolean> {
    const { wish } = await this.learner();
    return wish.kind === "turns"
      ? this.waitingTurns >= wish.turns
      : this.segments.length >= wish.groups * wish.groupSize;
  }

  private async update(): Promise<Metrics> {
    if (this.segments.length === 0)
      throw new LlamaGymError(
        "INVALID_STATE",
        "There is nothing to train on: no episode has ended since the last update.",
      );
    const learner = await this.learner();
    const segments = this.segments.splice(0);
    const metrics = await learner.update(segments);
    return { ...metrics, ...extractionShares(segments.flatMap(({ turns }) => turns)) };
  }

  /** One call at a time: each builds on what the last one left. */
  private async exclusively<Result>(name: string, call: () => Promise<Result>): Promise<Result> {
    if (this.busyWith !== undefined)
      throw new LlamaGymError(
        "INVALID_STATE",
        `${name} was called while ${this.busyWith} is under way; await each call.`,
      );
    this.busyWith = name;
    try {
      return await call();
    } finally {
      this.busyWith = undefined;
    }
  }
}

/** Whether tokens are drawn from less than the model's own distribution. */
function isTruncated({ topK, topP, minP, repetitionPenalty }: PlaySettings["reply"]["sampling"]): boolean {
  return topK > 0 || topP < 1 || minP > 0 || repetitionPenalty !== 1;
}
