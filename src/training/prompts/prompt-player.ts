import type { LanguageModel } from "../../generation/language-model.js";
import type { Experience, EpisodeTask } from "../../rollout/collector.js";
import { Replier, type SampledReply } from "../../rollout/replier.js";
import type { ReplySettings } from "../../rollout/settings.js";
import type { EpisodeSummary, Segment } from "../../rollout/turn.js";
import { RandomStream } from "../../tensor/random.js";
import type { EncodedRow } from "./dataset.js";
import { ScoringWatch, type RewardSample, type RewardScorer } from "./reward-functions.js";

/** Random streams by what they decide; each is a child of the seed. */
const ORDER_STREAM = 8;
const REPLY_STREAM = 9;

/** What a player's future depends on besides the model; JSON. */
export interface PlayerState {
  /** Prompts taken so far. */
  readonly prompts: number;
  /** Completions drawn so far. */
  readonly completions: number;
}

export interface PlayerOptions {
  readonly rows: readonly EncodedRow[];
  readonly settings: ReplySettings;
  readonly scorer: RewardScorer;
  readonly seed: number;
  /** Goes through the rows in another order in each epoch. */
  readonly shuffle: boolean;
}

/** A prompt and a completion as they were drawn and scored. */
export interface PlayedSample extends RewardSample {
  readonly reward: number;
}

/** Draws completions of prompts and has them scored: episodes of one turn. */
export class PromptPlayer {
  private readonly replier: Replier;
  private readonly watch = new ScoringWatch();
  private prompts = 0;
  private completions = 0;
  private order: { readonly epoch: number; readonly places: readonly number[] } | undefined;
  /** Metrics of the last batch of each round since they were taken. */
  private rounds: Readonly<Record<string, number>>[] = [];
  private samples: PlayedSample[] = [];

  constructor(
    model: LanguageModel,
    private readonly options: PlayerOptions,
  ) {
    this.replier = new Replier(model, options.settings);
  }

  /** How often all rows were gone through. */
  get epoch(): number {
    return this.prompts / this.options.rows.length;
  }

  /** The number of the row whose turn it is. */
  nextRow(): number {
    const { rows, shuffle, seed } = this.options;
    const epoch = Math.floor(this.prompts / rows.length);
    const place = this.prompts++ % rows.length;
    if (!shuffle) return place;
    if (this.order?.epoch !== epoch)
      this.order = { epoch, places: new RandomStream(seed, [ORDER_STREAM, epoch]).permutation(rows.length) };
    return this.order.places[place];
  }

  /** A completion for each task, whose seed is the number of a row. Throws REWARD_FAILED when nothing can be scored any more. */
  async episodes(
    tasks: readonly EpisodeTask[],
    { onRound }: { readonly onRound?: (turns: number, ended: readonly EpisodeSummary[]) => void } = {},
  ): Promise<Experience> {
    const rows = tasks.map(({ seed }) => this.options.rows[seed!]);
    const replies = await Promise.all(rows.map(async ({ tokens }) => this.reply(tokens)));
    const samples = rows.map(({ row }, i) => ({
      row,
      completion: replies[i].text,
      completionIds: replies[i].tokens,
    }));
    const { scores, rewards, metrics } = await this.options.scorer.score(samples);
    this.watch.check(rewards);
    this.rounds.push(metrics);
    this.samples.push(...samples.map((sample, i) => ({ ...sample, reward: rewards[i] })));
    const segments = tasks.map(({ group }, i) =>
      segmentOf(rows[i], replies[i], { group, reward: rewards[i], scores: scores[i] }),
    );
    const episodes = Array.from(rewards, (reward): EpisodeSummary => ({ return: reward, turns: 1, end: "terminated" }));
    onRound?.(tasks.length, episodes);
    return { segments, episodes };
  }

  /** What the reward functions gave since this was last asked for, and the completions. */
  takeRecords(): { readonly metrics: Readonly<Record<string, number>>; readonly samples: readonly PlayedSample[] } {
    const { rounds, samples } = this;
    this.rounds = [];
    this.samples = [];
    const names = Object.keys(rounds[0] ?? {});
    const mean = (name: string) => rounds.reduce((sum, round) => sum + round[name], 0) / rounds.length;
    return { metrics: Object.fromEntries(names.map((name) => [name, mean(name)])), samples };
  }

  getState(): PlayerState {
    return { prompts: this.prompts, completions: this.completions };
  }

  setState({ prompts, completions }: PlayerState): void {
    this.prompts = prompts;
    this.completions = completions;
  }

  /** Each completion has a stream of its own, so that nothing but their number must be kept. */
  private async reply(prompt: readonly number[]): Promise<SampledReply> {
    const random = new RandomStream(this.options.seed, [REPLY_STREAM, this.completions++]);
    return this.replier.reply({ prompt, random });
  }
}

function segmentOf(
  { tokens: prompt }: EncodedRow,
  { tokens, logProbs, allowed, text, finishReason }: SampledReply,
  { group, reward, scores }: Pick<Segment, "group" | "scores"> & { readonly reward: number },
): Segment {
  const turn = {
    prompt,
    tokens,
    logProbs,
    allowed,
    text,
    finishReason,
    isValid: true,
    attempts: 1,
    penalty: 0,
    reward,
  };
  return { turns: [turn], end: "terminated", nextPrompt: undefined, group, scores };
}
