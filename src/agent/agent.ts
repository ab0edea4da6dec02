import type { Learner, Metrics } from "../algorithms/learner.js";
import { createLearner } from "../algorithms/create-learner.js";
import type { Info } from "../envs/info.js";
import type { MaybePromise } from "../envs/maybe-promise.js";
import { LlamaGymError } from "../errors.js";
import { LanguageModel } from "../generation/language-model.js";
import { Playthrough } from "../rollout/playthrough.js";
import { PromptWriter } from "../rollout/prompt-writer.js";
import { Replier } from "../rollout/replier.js";
import { shareSparseReward } from "../rollout/rewards.js";
import type { Role } from "../rollout/role.js";
import type { PlaySettings } from "../rollout/settings.js";
import type { Segment, Turn } from "../rollout/turn.js";
import { RandomStream } from "../tensor/random.js";
import type { Tokenizer } from "../text/index.js";
import { playSettings, type AgentOptions } from "./options.js";

/** How an episode ended, for `terminateEpisode`. */
export interface EpisodeEnd<Observation> {
  /** Whether to train once a batch of turns is full. Default true, after `eval()` false. */
  readonly train?: boolean;
  /** The last observation of an episode that was cut off, not ended: its value stands for what would have come. */
  readonly truncatedAt?: Observation;
  readonly info?: Info;
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
  private mode: "train" | "eval" = "train";
  private play: Playthrough<Observation, Action> | undefined;
  private turns: Turn[] = [];
  private segments: Segment[] = [];
  private isActing = false;
  private learning: Promise<Learner> | undefined;

  /** Throws INVALID_ARGUMENT for options out of range. */
  constructor(
    model: LanguageModel,
    tokenizer?: Tokenizer,
    readonly options: AgentOptions<Observation, Action> = {},
  ) {
    this.model = tokenizer === undefined ? model : new LanguageModel(model.causalLM, tokenizer);
    this.settings = playSettings(this.model, options);
    this.writer = new PromptWriter(this.model.tokenizer, this.settings.dialogue.replyPrefix);
    const { reply } = this.settings;
    const evalReply = { ...reply, sampling: { ...reply.sampling, temperature: options.evalTemperature ?? 0 } };
    this.repliers = { train: new Replier(this.model, reply), eval: new Replier(this.model, evalReply) };
    this.random = new RandomStream(options.seed ?? 0);
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

  /** The action that a reply means; undefined when it means none (see the option invalidReply). */
  abstract extractAction(response: string, observation: Observation, info: Info): MaybePromise<Action | undefined>;

  /** The whole prompt of a turn in one message, without system prompt and earlier turns. */
  formatPrompt?(observation: Observation, info: Info): string;

  /** The replies that are possible: the agent then says one of them. */
  getChoices?(observation: Observation, info: Info): readonly string[] | undefined;

  /** From now on episodes are recorded and trained. */
  train(): this {
    this.mode = "train";
    return this;
  }

  /** From now on the agent plays without training, greedily unless evalTemperature says otherwise. */
  eval(): this {
    this.mode = "eval";
    return this;
  }

  get isTraining(): boolean {
    return this.mode === "train";
  }

  /** Turns that wait for an update, those of the present episode included. */
  get waitingTurns(): number {
    return this.segments.reduce((sum, { turns }) => sum + turns.length, this.turns.length);
  }

  /**
   * The action for an observation; the first call of an episode starts it.
   * Throws INVALID_STATE while another call is under way, AGENT_NO_ACTION, AGENT_FAILED, CONTEXT_OVERFLOW.
   */
  async act(observation: Observation, info: Info = {}): Promise<Action> {
    if (this.isActing)
      throw new LlamaGymError("INVALID_STATE", "act was called while another act is under way; await each call.");
    this.isActing = true;
    try {
      this.play ??= this.playthrough(this.random, this.mode);
      this.play.observe(observation, info);
      const { action, turn } = await this.play.reply();
      this.turns.push(turn);
      return action;
    } finally {
      this.isActing = false;
    }
  }

  /** What the last action brought; several calls after one action add up. Throws INVALID_STATE before an act, INVALID_ARGUMENT. */
  assignReward(reward: number): void {
    if (typeof reward !== "number" || !Number.isFinite(reward))
      throw new LlamaGymError("INVALID_ARGUMENT", `A reward must be a finite number, not ${String(reward)}.`);
    const turn = this.turns.at(-1);
    if (turn === undefined)
      throw new LlamaGymError(
        "INVALID_STATE",
        "assignReward belongs after act: no action of this episode awaits a reward.",
      );
    turn.reward += reward;
  }

  /**
   * Ends the episode. Once enough turns are gathered (ppo.batchSize) it trains on all of them and gives the update's metrics.
   * Throws INVALID_STATE when no turn was played, and what `trainBatch` throws.
   */
  async terminateEpisode({ train = this.isTraining, truncatedAt, info = {} }: EpisodeEnd<Observation> = {}): Promise<
    Metrics | undefined
  > {
    const { play, turns } = this;
    if (play === undefined || turns.length === 0)
      throw new LlamaGymError(
        "INVALID_STATE",
        "terminateEpisode belongs after act: no turn of this episode was played.",
      );
    let nextPrompt: readonly number[] | undefined;
    if (truncatedAt !== undefined) {
      play.observe(truncatedAt, info);
      nextPrompt = play.prompt();
    }
    this.play = undefined;
    this.turns = [];
    if (!this.isTraining) return undefined;
    if (this.options.shareSparseRewards === true) shareSparseReward(turns);
    this.segments.push({ turns, end: nextPrompt === undefined ? "terminated" : "truncated", nextPrompt });
    if (!train) return undefined;
    const { wish } = await this.learner();
    const wanted = wish.kind === "turns" ? wish.turns : wish.groups * wish.groupSize;
    const waiting = wish.kind === "turns" ? this.waitingTurns : this.segments.length;
    return waiting >= wanted ? this.trainBatch() : undefined;
  }

  /** Trains on the episodes that wait, however few. Throws INVALID_STATE when there is none or nothing of the model is trained. */
  async trainBatch(): Promise<Metrics> {
    if (this.segments.length === 0)
      throw new LlamaGymError(
        "INVALID_STATE",
        "There is nothing to train on: no episode has ended since the last update.",
      );
    const segments = this.segments;
    this.segments = [];
    return (await this.learner()).update(segments);
  }

  /** Saves the adapter (with the value head) or the trained model, and the tokenizer, as `model.savePretrained` does. */
  async save(folder: string): Promise<void> {
    await this.model.savePretrained(folder);
  }

  /** Takes back trained values that `save` wrote. Throws FILE_NOT_FOUND, WEIGHTS_MISMATCH. */
  async load(folder: string): Promise<void> {
    await this.model.loadTrained(folder);
  }

  /** The algorithm at work; its graphs are built at the first call. */
  async learner(): Promise<Learner> {
    this.learning ??= createLearner(this.model.causalLM, {
      ppo: this.options.ppo,
      maxTokens: this.options.maxTokens,
      temperature: this.settings.reply.sampling.temperature,
      isTruncated: isTruncated(this.settings.reply.sampling),
      random: new RandomStream(this.options.seed ?? 0, [1]),
    });
    return this.learning;
  }

  /** A new episode of this agent, drawing from a stream of its own; for those who play many at once. */
  playthrough(random: RandomStream, mode: "train" | "eval" = "train"): Playthrough<Observation, Action> {
    return new Playthrough(this, this.repliers[mode], this.writer, this.settings, random);
  }
}

/** Whether tokens are drawn from less than the model's own distribution. */
function isTruncated({ topK, topP, minP, repetitionPenalty }: PlaySettings["reply"]["sampling"]): boolean {
  return topK > 0 || topP < 1 || minP > 0 || repetitionPenalty !== 1;
}
