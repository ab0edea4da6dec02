import type { EpisodeSpec } from "../../rollout/rollout-slot.js";
import type { TokenDistribution } from "../../../engine/runtime/index.js";
import type { LanguageModel } from "../../../generation/index.js";
import type { Rollout } from "../../rollout/rollout-collector.js";
import { CompletionSampler, type TurnCompletion, type TurnRequest } from "../../rollout/completion-sampler.js";
import type { CompletionSettings } from "../../rollout/rollout-settings.js";
import type { EpisodeSummary, Trajectory, Turn, TurnRecording } from "../../rollout/trajectory.js";
import { stream } from "../../../core/random/streams.js";
import type { EncodedRow } from "../../data/prompt-dataset.js";
import { describePrompt } from "../record-rollout.js";
import { UnscoredGuard, type RewardScorer } from "./reward-scorer.js";

/** The state of a PromptRollout; JSON. */
export interface PromptRolloutState {
  /** Number of prompts so far. */
  readonly prompts: number;
  /** Number of completions so far. */
  readonly completions: number;
}

export interface PromptRolloutOptions {
  readonly rows: readonly EncodedRow[];
  readonly settings: CompletionSettings;
  readonly scorer: RewardScorer;
  readonly seed: number;
  /** Shuffles the rows in each epoch. */
  readonly shuffle: boolean;
  /** Random streams of completions. Default "promptCompletions". */
  readonly streamName?: "promptCompletions" | "evaluation";
}

/** Samples and scores completions of prompts, as episodes of one turn. */
export class PromptRollout {
  private readonly completionSampler: CompletionSampler;
  private readonly unscoredGuard = new UnscoredGuard();
  private prompts = 0;
  private completions = 0;
  private order: { readonly epoch: number; readonly rowIndices: readonly number[] } | undefined;
  /** Metrics of the batches since the last flush. */
  private batchMetrics: Readonly<Record<string, number>>[] = [];

  constructor(
    model: LanguageModel,
    private readonly options: PromptRolloutOptions,
  ) {
    this.completionSampler = new CompletionSampler(model, options.settings);
  }

  get rowCount(): number {
    return this.options.rows.length;
  }

  /** Number of passes over the rows. */
  get epoch(): number {
    return this.prompts / this.options.rows.length;
  }

  /** Returns the index of the next row. */
  nextRow(): number {
    const { rows, shuffle, seed } = this.options;
    const epoch = Math.floor(this.prompts / rows.length);
    const index = this.prompts++ % rows.length;
    if (!shuffle) return index;
    if (this.order?.epoch !== epoch)
      this.order = { epoch, rowIndices: stream(seed, "promptOrder", epoch).permutation(rows.length) };
    return this.order.rowIndices[index];
  }

  /**
   * Samples a completion per spec, whose seed is a row index. @throws REWARD_FAILED after too many
   * unscored batches.
   */
  async collectEpisodes(
    specs: readonly EpisodeSpec[],
    { onProgress }: { readonly onProgress?: (turns: number, finished: readonly EpisodeSummary[]) => void } = {},
  ): Promise<Rollout> {
    const rows = specs.map(({ seed }) => this.options.rows[seed!]);
    const sampled = await Promise.all(
      rows.map(async ({ tokens }, i) => this.complete(tokens, specs[i].record ?? false)),
    );
    const samples = rows.map(({ row }, i) => ({ row, completion: sampled[i].text, completionIds: sampled[i].tokens }));
    const { rewardsPerFunction, rewards, metrics } = await this.options.scorer.score(samples);
    this.unscoredGuard.check(rewards);
    this.batchMetrics.push(metrics);
    const trajectories = specs.map(({ group }, i) =>
      toTrajectory(rows[i], sampled[i], { group, reward: rewards[i], rewardsPerFunction: rewardsPerFunction[i] }),
    );
    const finishedEpisodes = Array.from(rewards, (reward): EpisodeSummary => ({
      return: reward,
      turns: 1,
      end: "terminated",
    }));
    onProgress?.(specs.length, finishedEpisodes);
    return { trajectories, finishedEpisodes };
  }

  /** Returns and clears the reward metrics since the last call. */
  flushMetrics(): Readonly<Record<string, number>> {
    const { batchMetrics } = this;
    this.batchMetrics = [];
    const names = Object.keys(batchMetrics[0] ?? {});
    const mean = (name: string) => batchMetrics.reduce((sum, metrics) => sum + metrics[name], 0) / batchMetrics.length;
    return Object.fromEntries(names.map((name) => [name, mean(name)]));
  }

  getState(): PromptRolloutState {
    return { prompts: this.prompts, completions: this.completions };
  }

  setState({ prompts, completions }: PromptRolloutState): void {
    this.prompts = prompts;
    this.completions = completions;
  }

  /** Samples from a stream per completion, so that a checkpoint needs only their number. */
  private async complete(prompt: readonly number[], isRecorded: boolean): Promise<SampledCompletion> {
    const { seed, streamName = "promptCompletions" } = this.options;
    const random = stream(seed, streamName, this.completions++);
    if (!isRecorded) return this.completionSampler.sample({ prompt, random });
    const distributions: (TokenDistribution | undefined)[] = [];
    const onDistribution: TurnRequest["onDistribution"] = (distribution, _value, i) =>
      (distributions[i] = distribution);
    return { ...(await this.completionSampler.sample({ prompt, random, onDistribution })), distributions };
  }
}

interface SampledCompletion extends TurnCompletion {
  /** Only of a recorded completion. */
  readonly distributions?: TurnRecording["distributions"];
}

function toTrajectory(
  { row, tokens: prompt }: EncodedRow,
  { tokens, logProbs, allowedTokens, hasKeptTokens, text, finishReason, distributions }: SampledCompletion,
  { group, reward, rewardsPerFunction }: Pick<Trajectory, "group" | "rewardsPerFunction"> & { readonly reward: number },
): Trajectory {
  const turn: Turn = {
    prompt,
    tokens,
    logProbs,
    allowedTokens,
    hasKeptTokens,
    text,
    finishReason,
    isValid: true,
    attempts: 1,
    penalty: 0,
    ...(distributions === undefined
      ? {}
      : {
          recording: { observation: describePrompt(row.prompt), render: undefined, action: undefined, distributions },
        }),
    reward,
  };
  return { turns: [turn], end: "terminated", bootstrapPrompt: undefined, group, rewardsPerFunction };
}
