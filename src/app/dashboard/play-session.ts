import { stream } from "../../core/random/streams.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { LlamaGymError } from "../../core/errors.js";
import { getChoices, type Env, type Info } from "../../envs/index.js";
import { CompletionSampler, type TurnCompletion, type TurnRequest } from "../../rl/rollout/completion-sampler.js";
import type { Episode } from "../../rl/rollout/episode.js";
import { checkStepResult } from "../../rl/rollout/validate-env-output.js";
import { addReturnsToGo, describeTokens, toTurnDetail } from "../../rl/train/record-rollout.js";
import type { ChatRequest, PlayState, PlayStepRequest, TurnDetail } from "./api.js";
import type { PlayAgent } from "./play-models.js";

/** Choices whose probabilities are computed; each costs a pass of the model. */
const MAX_CHOICES = 100;
/** Turns of an episode that is played by hand. */
const MAX_TURNS = 1_000;

/** Samples completions, or takes one that was written by hand. */
class ManualSampler extends CompletionSampler {
  /** The next completion; undefined to sample it. */
  text: string | undefined;

  override async sample(request: TurnRequest): Promise<TurnCompletion> {
    const { text } = this;
    if (text === undefined) return super.sample(request);
    const tokens = this.encode(text, { prompt: request.prompt }) ?? [];
    const completer = await this.model.completer();
    const [logProbs] = await completer.score(request.prompt, [tokens]);
    return { tokens, logProbs, text, finishReason: "stop", allowedTokens: undefined };
  }
}

/** An episode that is stepped by hand, with a completion of the model or of the user for each turn. */
export class PlaySession {
  private env: Env | undefined;
  private episode!: Episode;
  private random!: RandomStream;
  private observation: unknown;
  private info: Info = {};
  private turns: TurnDetail[] = [];
  private isDone = false;
  private seed = 0;
  private queue: Promise<unknown> = Promise.resolve();

  constructor(
    readonly id: string,
    private readonly player: PlayAgent,
  ) {}

  /** Starts an episode. Calls of a session run one after another. */
  async reset(seed = 0): Promise<PlayState> {
    return this.enqueue(async () => {
      const { player } = this;
      this.env ??= await player.makeEnv();
      this.random = stream(seed, "play");
      ({ observation: this.observation, info: this.info } = await this.env.reset({ seed }));
      Object.assign(this, { seed, isDone: false, turns: [] });
      this.episode = player.agent.newEpisode(this.random);
      return this.describe();
    });
  }

  /** Takes a turn. @throws INVALID_STATE after the episode's end. */
  async step({ completion, observation, temperature }: PlayStepRequest): Promise<PlayState> {
    return this.enqueue(async () => {
      if (this.isDone || this.turns.length >= MAX_TURNS)
        throw new LlamaGymError("INVALID_STATE", "The episode has ended. Start another one.");
      const { agent } = this.player;
      const sampler = new ManualSampler(agent.model, withTemperature(agent.settings.completion, temperature));
      sampler.text = completion;
      // The episode so far, with the sampler of this turn.
      const saved = this.turns.length === 0 ? undefined : this.episode.getState();
      this.episode = agent.newEpisode(this.random, "train", sampler);
      if (saved !== undefined) this.episode.setState(saved, this.observation, this.info);
      const render = await this.render();
      this.episode.observe(this.observation, this.info, observation);
      const { action, turn } = await this.episode.act({ record: true });
      const result = await this.env!.step(action);
      checkStepResult(result, this.env!.toString());
      turn.reward += result.reward;
      const recording = turn.recording && { ...turn.recording, render, action: this.env!.text?.formatAction(action) };
      this.turns.push(toTurnDetail({ ...turn, recording }, undefined, { step: 0, tokenizer: agent.model.tokenizer }));
      addReturnsToGo(this.turns);
      this.observation = result.observation;
      this.info = result.info;
      this.isDone = result.terminated || result.truncated;
      return this.describe();
    });
  }

  /** Streams the reply to a conversation, which is not part of the episode. */
  chat({ messages, temperature, maxNewTokens = 200 }: ChatRequest, signal: AbortSignal): AsyncIterable<string> {
    const { model } = this.player.agent;
    return model.stream(messages, { temperature, maxNewTokens, signal });
  }

  async close(): Promise<void> {
    await this.enqueue(async () => this.env?.close());
  }

  private async describe(): Promise<PlayState> {
    const { player, env, info, observation, turns } = this;
    const { model } = player.agent;
    const preview = player.agent.newEpisode(this.random);
    if (turns.length > 0) preview.setState(this.episode.getState(), observation, info);
    if (!this.isDone) preview.observe(observation, info);
    const prompt = this.isDone ? [] : preview.buildPrompt();
    const choices = this.isDone ? undefined : getChoices(env!.text!, observation, info);
    const ids = turns.flatMap((turn) => [
      ...turn.prompt,
      ...turn.tokens,
      ...(turn.alternatives ?? []).flat().map(({ token }) => token),
    ]);
    return {
      session: this.id,
      env: player.env,
      model: player.checkpoint,
      seed: this.seed,
      observation: preview.formatObservation(observation, info),
      render: (await this.render()) ?? null,
      prompt,
      actions: choices === undefined ? null : await this.rate(prompt, choices),
      turns,
      vocabulary: describeTokens(new Set([...ids, ...prompt]), model.tokenizer),
      return: turns.reduce((sum, { reward }) => sum + (reward ?? 0), 0),
      isDone: this.isDone,
    };
  }

  /** Returns the probabilities of choices as the model's completions. */
  private async rate(prompt: readonly number[], choices: readonly string[]): Promise<PlayState["actions"]> {
    if (choices.length > MAX_CHOICES) return choices.map((text) => ({ text, probability: null }));
    const { agent } = this.player;
    const { temperature } = agent.settings.completion.sampling;
    const { probabilities } = await agent.model.choose(prompt, choices, { temperature, seed: 0 });
    return choices.map((text, i) => ({ text, probability: probabilities[i] }));
  }

  private async render(): Promise<string | undefined> {
    if (!this.env!.metadata.renderModes.includes("ansi")) return undefined;
    const frame = await this.env!.render("ansi");
    return typeof frame === "string" ? frame : undefined;
  }

  private async enqueue<Result>(call: () => Promise<Result>): Promise<Result> {
    const result = this.queue.then(call);
    this.queue = result.catch(() => {});
    return result;
  }
}

/** Returns completion settings with another sampling temperature. */
export function withTemperature<Settings extends { readonly sampling: { readonly temperature: number } }>(
  settings: Settings,
  temperature: number | undefined,
): Settings {
  return temperature === undefined ? settings : { ...settings, sampling: { ...settings.sampling, temperature } };
}
