import type { EpisodeSpec } from "../../rollout/rollout-slot.js";
import type { TokenDistribution } from "../../../engine/runtime/index.js";
import type { LanguageModel } from "../../../generation/index.js";
import type { Rollout } from "../../rollout/rollout-collector.js";
import { CompletionSampler, type TurnRequest } from "../../rollout/completion-sampler.js";
import type { CompletionSettings } from "../../rollout/rollout-settings.js";
import type { EpisodeSummary, Trajectory, Turn } from "../../rollout/trajectory.js";
import { stream } from "../../../core/random/streams.js";
import type { ChatMessage } from "../../../models/text/index.js";
import type { Metrics } from "../../algorithms/learner.js";
import type { EncodedRow } from "../../data/prompt-dataset.js";
import { describePrompt } from "../record-rollout.js";
import type { PromptCompletion, SampleCompletion, ToolRollout } from "./tool-rollout.js";
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
  /** Executes the model's calls of tools; undefined without tools. */
  readonly tools?: ToolRollout;
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
    const { completions: sampled, metrics: toolMetrics } = await this.completeRows(rows, specs);
    const samples = rows.map(({ row }, i) => {
      const { text, tokens, messages } = sampled[i];
      return { row, completion: messages ?? text, completionIds: tokens };
    });
    const { rewardsPerFunction, rewards, metrics } = await this.options.scorer.score(samples);
    this.unscoredGuard.check(rewards);
    this.batchMetrics.push({ ...metrics, ...toolMetrics });
    const trajectories = specs.map(({ group }, i) =>
      toTrajectory(rows[i], sampled[i], { group, reward: rewards[i], rewardsPerFunction: rewardsPerFunction?.[i] }),
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

  private async completeRows(
    rows: readonly EncodedRow[],
    specs: readonly EpisodeSpec[],
  ): Promise<{ readonly completions: readonly PromptCompletion[]; readonly metrics?: Metrics }> {
    const sample = specs.map(({ record = false }) => this.startCompletion(record));
    const { tools } = this.options;
    if (tools === undefined)
      return { completions: await Promise.all(rows.map(async ({ tokens }, i) => sample[i](tokens))) };
    // Prompts of texts were refused with the dataset.
    const prompts = rows.map(({ row, tokens }) => ({ messages: row.prompt as readonly ChatMessage[], tokens }));
    return tools.complete(prompts, sample);
  }

  /** Samples from a stream per completion, so that a checkpoint needs only their number. */
  private startCompletion(isRecorded: boolean): SampleCompletion {
    const { seed, streamName = "promptCompletions" } = this.options;
    const random = stream(seed, streamName, this.completions++);
    const { completionSampler } = this;
    if (!isRecorded)
      return async (prompt, { maxNewTokens } = {}) => completionSampler.sample({ prompt, random, maxNewTokens });
    const distributions: (TokenDistribution | undefined)[] = [];
    return async (prompt, { offset = 0, maxNewTokens } = {}) => {
      const onDistribution: TurnRequest["onDistribution"] = (distribution, _value, i) =>
        (distributions[offset + i] = distribution);
      return {
        ...(await completionSampler.sample({ prompt, random, onDistribution, maxNewTokens })),
        distributions,
      };
    };
  }
}

function toTrajectory(
  { row, tokens: prompt, teacherTokens }: EncodedRow,
  {
    tokens,
    logProbs,
    allowedTokens,
    hasKeptTokens,
    numToolTokens,
    text,
    finishReason,
    distributions,
  }: PromptCompletion,
  { group, reward, rewardsPerFunction }: Pick<Trajectory, "group" | "rewardsPerFunction"> & { readonly reward: number },
): Trajectory {
  const turn: Turn = {
    prompt,
    tokens,
    logProbs,
    allowedTokens,
    hasKeptTokens,
    numToolTokens,
    text,
    finishReason,
    isValid: true,
    attempts: 1,
    penalty: 0,
    ...(teacherTokens === undefined ? {} : { teacherPrompt: teacherTokens }),
    ...(distributions === undefined
      ? {}
      : {
          recording: { observation: describePrompt(row.prompt), render: undefined, action: undefined, distributions },
        }),
    reward,
  };
  return { turns: [turn], end: "terminated", bootstrapPrompt: undefined, group, rewardsPerFunction };
}
