import { invalidArgument } from "../../../core/errors.js";
import type {
  RolloutSpec,
  Learner,
  LearnerState,
  Metrics,
  TurnInsight,
  UpdateOptions,
} from "../../algorithms/learner.js";
import type { GradientTransport } from "../../algorithms/update/gradient-transport.js";
import type { TurnSftLearner } from "../../algorithms/sft/turn-sft-learner.js";
import type { ExampleState } from "../../algorithms/shared/example-learner.js";
import type { LanguageModel } from "../../../generation/index.js";
import type { Trajectory, Turn } from "../../rollout/trajectory.js";
import type { RandomState, RandomStream } from "../../../core/random/random-stream.js";
import { toTurnTokens, type ReplayBuffer, type ReplayBufferState } from "./replay-buffer.js";
import { toSftMetrics } from "../../algorithms/sft/sft-learner.js";
import type { OnlineSftConfig } from "./online-sft-settings.js";
import { SuccessFilter, type SuccessFilterState } from "./success-filter.js";

export interface OnlineSftLearnerOptions {
  readonly config: OnlineSftConfig;
  readonly replay: ReplayBuffer;
  /** Memory of a micro-batch, in tokens. */
  readonly microBatchTokens?: number;
  /** Temperature that the policy samples with. */
  readonly temperature: number;
  /** Draws from the buffer. */
  readonly random: RandomStream;
  readonly seed: number;
}

/**
 * JSON state of a checkpoint in addition to the algorithm's. The optimizer's moments are stored
 * after the algorithm's.
 */
interface ReplayTrainingState {
  readonly isEnabled: boolean;
  readonly replay: ReplayBufferState;
  readonly successFilter: SuccessFilterState;
  readonly random: RandomState;
  readonly sft: SavedSftState | null;
}

interface SavedSftState extends Omit<ExampleState, "optimizer"> {
  readonly kind: ExampleState["optimizer"]["kind"];
  readonly optimizerStep: number;
}

interface OnlineSftBatch {
  readonly trajectories: readonly Trajectory[];
  /** The algorithm's. */
  readonly batch: unknown;
}

interface OnlineSftState {
  readonly algorithm: unknown;
  /** Null if online SFT was never enabled. */
  readonly onlineSft: ReplayTrainingState | null;
}

/**
 * Algorithm with online SFT (self-imitation): keeps successful episodes in the replay buffer and,
 * while enabled, follows each update of the algorithm by an SFT update on turns of the best of
 * them.
 */
export class OnlineSftLearner implements Learner<OnlineSftBatch> {
  private readonly successFilter = new SuccessFilter();
  /** Whether episodes are recorded: true once online SFT has been enabled. */
  private recordsEpisodes = false;
  private isEnabled = false;
  private sft: TurnSftLearner | undefined;

  constructor(
    private readonly algorithm: Learner,
    private readonly model: LanguageModel,
    private readonly options: OnlineSftLearnerOptions,
  ) {
    this.onlineSft = options.config.onlineSft;
  }

  get rolloutSpec(): RolloutSpec {
    return this.algorithm.rolloutSpec;
  }

  /** Whether SFT updates are made; can be changed between updates. */
  get onlineSft(): boolean {
    return this.isEnabled;
  }

  set onlineSft(isEnabled: boolean) {
    this.isEnabled = isEnabled;
    this.recordsEpisodes ||= isEnabled;
  }

  async prepare(trajectories: readonly Trajectory[]): Promise<OnlineSftBatch> {
    return { trajectories, batch: await this.algorithm.prepare(trajectories) };
  }

  async update({ trajectories, batch }: OnlineSftBatch, options?: UpdateOptions): Promise<Metrics> {
    const metrics = await this.algorithm.update(batch, options);
    if (!this.recordsEpisodes) return metrics;
    const { replay } = this.options;
    for (const episode of this.successFilter.filter(trajectories)) replay.add(episode);
    return { ...metrics, ...(this.isEnabled ? await this.trainOnReplay() : {}), ...replay.getMetrics() };
  }

  inspect({ batch }: OnlineSftBatch, turns: ReadonlySet<Turn>): ReadonlyMap<Turn, TurnInsight> {
    return this.algorithm.inspect?.(batch, turns) ?? new Map();
  }

  /** @throws INVALID_ARGUMENT for an algorithm with its own update. */
  useGradientTransport(transport: GradientTransport): void {
    if (this.algorithm.useGradientTransport === undefined)
      throw invalidArgument("The algorithm computes its updates itself, which gradient workers cannot. Remove them.");
    this.algorithm.useGradientTransport(transport);
  }

  async getState(): Promise<LearnerState> {
    const { optimizer, state: algorithm, ...tensors } = await this.algorithm.getState();
    const { replay, random } = this.options;
    const sft = await this.sft?.getState();
    const onlineSft: ReplayTrainingState | null = this.recordsEpisodes
      ? {
          isEnabled: this.isEnabled,
          replay: replay.getState(),
          successFilter: this.successFilter.getState(),
          random: random.getState(),
          sft: sft === undefined ? null : dropOptimizerState(sft),
        }
      : null;
    const state: OnlineSftState = { algorithm, onlineSft };
    const moments = [...optimizer.moments, ...(sft?.optimizer.moments ?? [])];
    return { ...tensors, optimizer: { ...optimizer, moments }, state };
  }

  async setState({ optimizer, state, ...tensors }: LearnerState): Promise<void> {
    const { algorithm, onlineSft } = state as OnlineSftState;
    const sftState = onlineSft?.sft ?? null;
    // Both optimizers train the same parameters, so each has half of the moments.
    const count = sftState === null ? optimizer.moments.length : optimizer.moments.length / 2;
    await this.algorithm.setState({
      ...tensors,
      optimizer: { ...optimizer, moments: optimizer.moments.slice(0, count) },
      state: algorithm,
    });
    if (onlineSft === null) return;
    this.onlineSft = true;
    this.isEnabled = onlineSft.isEnabled;
    this.options.replay.setState(onlineSft.replay);
    this.successFilter.setState(onlineSft.successFilter);
    this.options.random.setState(onlineSft.random);
    if (sftState === null) return;
    const { step, numTokens, kind, optimizerStep } = sftState;
    const saved = { kind, step: optimizerStep, moments: optimizer.moments.slice(count) };
    await (await this.getSftLearner()).setState({ step, numTokens, optimizer: saved });
  }

  async release(): Promise<void> {
    await this.sft?.release();
    await this.algorithm.release();
  }

  private async trainOnReplay(): Promise<Metrics> {
    const { config, replay, random } = this.options;
    const turns = replay.sample(config.sftBatchSize, random);
    if (turns.length === 0) return {};
    return toSftMetrics(await (await this.getSftLearner()).update(turns.map(toTurnTokens)));
  }

  private async getSftLearner(): Promise<TurnSftLearner> {
    const { TurnSftLearner } = await import("../../algorithms/sft/turn-sft-learner.js");
    const { config, microBatchTokens, temperature, seed } = this.options;
    // The weight scales the learning rate, because AdamW's steps do not depend on the scale of the
    // loss.
    const learningRate = config.onlineSftWeight * config.sftLearningRate;
    // The algorithm's checkpoints contain the states.
    const { frozenStates } = this.model;
    const options = { learningRate, microBatchTokens, temperature, seed, frozenStates };
    return (this.sft ??= await TurnSftLearner.create(this.model, options));
  }
}

function dropOptimizerState({ step, numTokens, optimizer }: ExampleState): SavedSftState {
  return { step, numTokens, kind: optimizer.kind, optimizerStep: optimizer.step };
}
