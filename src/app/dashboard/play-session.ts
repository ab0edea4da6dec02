import { stream } from "../../core/random/streams.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { LlamaGymError } from "../../core/errors.js";
import { printWarning } from "../../core/terminal-text.js";
import { getChoices } from "../../envs/index.js";
import { CompletionSampler, type Episode, EpisodeRunner, closeEnvs, openEnvs } from "../../rl/rollout/index.js";
import { addReturnsToGo, describeTokens, toTurnDetail } from "../../rl/train/index.js";
import type { PlayChatRequest, PlayState, PlayStepRequest, TurnDetail } from "./api.js";
import type { PlayAgent } from "./play-models.js";

/** Choices whose probabilities are computed; each costs a pass of the model. */
const MAX_CHOICES = 100;
/** Turns of an episode that is played by hand. */
const MAX_TURNS = 1_000;

/**
 * An episode that is stepped by hand, with a completion of the model or of the user for each turn.
 */
export class PlaySession {
  private runner: EpisodeRunner | undefined;
  private episode!: Episode;
  private random!: RandomStream;
  private turns: TurnDetail[] = [];
  private seed = 0;
  private queue: Promise<unknown> = Promise.resolve();

  constructor(
    readonly id: string,
    private readonly player: PlayAgent,
  ) {}

  /** Starts an episode. Calls of a session run one after another. */
  async reset(seed = 0): Promise<PlayState> {
    return this.enqueue(async () => {
      const { agent } = this.player;
      this.runner ??= await this.openRunner();
      this.random = stream(seed, "play");
      await this.runner.reset(seed);
      Object.assign(this, { seed, turns: [] });
      this.episode = agent.newEpisode(this.random);
      return this.describe(this.runner);
    });
  }

  /** Takes a turn. @throws INVALID_STATE after the episode's end. */
  async step({ completion, observation, temperature }: PlayStepRequest): Promise<PlayState> {
    return this.enqueue(async () => {
      const { runner } = this;
      if (runner === undefined || runner.isDone || this.turns.length >= MAX_TURNS)
        throw new LlamaGymError("INVALID_STATE", "The episode has ended. Start another one.");
      const { agent } = this.player;
      const sampler = new CompletionSampler(agent.model, withTemperature(agent.settings.completion, temperature));
      // The episode so far, with the sampler of this turn.
      const saved = this.turns.length === 0 ? undefined : this.episode.getState();
      this.episode = agent.newEpisode(this.random, "train", { sampler });
      if (saved !== undefined) this.episode.setState(saved, runner.observation, runner.info);
      const render = await runner.render();
      this.episode.observe(runner.observation, runner.info, observation);
      const { action, turn } = await this.episode.act({ record: true, completion });
      const { reward } = await runner.step(action);
      turn.reward += reward;
      const recording = turn.recording && { ...turn.recording, render, action: runner.env.text?.formatAction(action) };
      this.turns.push(toTurnDetail({ ...turn, recording }, undefined, { step: 0, tokenizer: agent.model.tokenizer }));
      addReturnsToGo(this.turns);
      return this.describe(runner);
    });
  }

  /** Streams the reply to a conversation, which is not part of the episode. */
  chat({ messages, temperature, maxNewTokens = 200 }: PlayChatRequest, signal: AbortSignal): AsyncIterable<string> {
    const { model } = this.player.agent;
    return model.stream(messages, { temperature, maxNewTokens, signal });
  }

  async close(): Promise<void> {
    await this.enqueue(async () => closeEnvs(this.runner === undefined ? [] : [this.runner.env], printWarning));
  }

  private async openRunner(): Promise<EpisodeRunner> {
    const { envs, agent } = this.player;
    const { settings } = agent;
    const [env] = await openEnvs(envs.make, 1, settings);
    return new EpisodeRunner(env, { settings });
  }

  private async describe(runner: EpisodeRunner): Promise<PlayState> {
    const { player, turns } = this;
    const { env, info, observation, isDone } = runner;
    const { model } = player.agent;
    const preview = player.agent.newEpisode(this.random);
    if (turns.length > 0) preview.setState(this.episode.getState(), observation, info);
    if (!isDone) preview.observe(observation, info);
    const prompt = isDone ? [] : preview.buildPrompt();
    const choices = isDone ? undefined : getChoices(env.text!, observation, info);
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
      render: (await runner.render()) ?? null,
      prompt,
      actions: choices === undefined ? null : await this.rate(prompt, choices),
      turns,
      vocabulary: describeTokens(new Set([...ids, ...prompt]), model.tokenizer),
      return: turns.reduce((sum, { reward }) => sum + (reward ?? 0), 0),
      isDone,
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
