import type { ExperienceWish, Learner, LearnerState, Metrics, UpdateOptions } from "../../algorithms/learner.js";
import { SftTrainer, type SftState } from "../../algorithms/sft/trainer.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { Segment } from "../../rollout/turn.js";
import type { RandomState, RandomStream } from "../../tensor/random.js";
import type { ReplayBuffer, ReplayState } from "./buffer.js";
import { turnExample } from "./examples.js";
import { sftMetrics } from "./sft-metrics.js";
import type { ImitationConfig } from "./settings.js";
import { Successes, type SuccessState } from "./successes.js";

export interface ImitatingOptions {
  readonly config: ImitationConfig;
  readonly replay: ReplayBuffer;
  /** Tokens of one forward and backward pass. */
  readonly maxTokens?: number;
  /** Decides what is drawn from the buffer. */
  readonly random: RandomStream;
  readonly seed: number;
}

/** What a checkpoint keeps besides the algorithm's own; JSON. The optimiser's moments stand behind the algorithm's. */
interface ImitationState {
  readonly isOn: boolean;
  readonly replay: ReplayState;
  readonly successes: SuccessState;
  readonly random: RandomState;
  readonly sft: SavedSft | null;
}

interface SavedSft extends Omit<SftState, "optimizer"> {
  readonly kind: SftState["optimizer"]["kind"];
  readonly optimizerStep: number;
}

interface SavedState {
  readonly algorithm: unknown;
  /** null where nothing was ever imitated. */
  readonly imitation: ImitationState | null;
}

/**
 * An algorithm with imitation beside it: keeps the successes among what was played and, while that is on, takes after each of the
 * algorithm's updates one more on turns of the best of them (cross-entropy).
 */
export class ImitatingLearner implements Learner {
  private readonly successes = new Successes();
  /** Whether episodes are kept: from when it was first switched on. */
  private keeps = false;
  private isOn = false;
  private sft: SftTrainer | undefined;

  constructor(
    private readonly algorithm: Learner,
    private readonly model: LanguageModel,
    private readonly options: ImitatingOptions,
  ) {
    this.onlineSft = options.config.onlineSft;
  }

  get wish(): ExperienceWish {
    return this.algorithm.wish;
  }

  /** Whether updates on kept episodes are taken; it may be switched at any time. */
  get onlineSft(): boolean {
    return this.isOn;
  }

  set onlineSft(isOn: boolean) {
    this.isOn = isOn;
    this.keeps ||= isOn;
  }

  async update(segments: readonly Segment[], options?: UpdateOptions): Promise<Metrics> {
    const metrics = await this.algorithm.update(segments, options);
    if (!this.keeps) return metrics;
    const { replay } = this.options;
    for (const episode of this.successes.take(segments)) replay.add(episode);
    return { ...metrics, ...(this.isOn ? await this.imitate() : {}), ...replay.statistics() };
  }

  async getState(): Promise<LearnerState> {
    const { optimizer, state: algorithm } = await this.algorithm.getState();
    const { replay, random } = this.options;
    const sft = await this.sft?.getState();
    const imitation: ImitationState | null = this.keeps
      ? {
          isOn: this.isOn,
          replay: replay.getState(),
          successes: this.successes.getState(),
          random: random.getState(),
          sft: sft === undefined ? null : withoutMoments(sft),
        }
      : null;
    const state: SavedState = { algorithm, imitation };
    return { optimizer: { ...optimizer, moments: [...optimizer.moments, ...(sft?.optimizer.moments ?? [])] }, state };
  }

  async setState({ optimizer, state }: LearnerState): Promise<void> {
    const { algorithm, imitation } = state as SavedState;
    const own = imitation?.sft ?? null;
    // Both train the same parameters by AdamW, so each has half of the moments.
    const count = own === null ? optimizer.moments.length : optimizer.moments.length / 2;
    await this.algorithm.setState({
      optimizer: { ...optimizer, moments: optimizer.moments.slice(0, count) },
      state: algorithm,
    });
    if (imitation === null) return;
    this.onlineSft = true;
    this.isOn = imitation.isOn;
    this.options.replay.setState(imitation.replay);
    this.successes.setState(imitation.successes);
    this.options.random.setState(imitation.random);
    if (own === null) return;
    const { step, numTokens, kind, optimizerStep } = own;
    const saved = { kind, step: optimizerStep, moments: optimizer.moments.slice(count) };
    await (await this.trainer()).setState({ step, numTokens, optimizer: saved });
  }

  async release(): Promise<void> {
    await this.sft?.release();
    await this.algorithm.release();
  }

  private async imitate(): Promise<Metrics> {
    const { config, replay, random } = this.options;
    const turns = replay.sample(config.sftBatchSize, random);
    if (turns.length === 0) return {};
    return sftMetrics(await (await this.trainer()).update(turns.map(turnExample)));
  }

  private async trainer(): Promise<SftTrainer> {
    const { config, maxTokens, seed } = this.options;
    // AdamW's steps do not depend on the scale of a loss, so the weight is on the learning rate.
    const learningRate = config.sftWeight * config.sftLearningRate;
    return (this.sft ??= await SftTrainer.create(this.model, { learningRate, maxTokens, seed }));
  }
}

function withoutMoments({ step, numTokens, optimizer }: SftState): SavedSft {
  return { step, numTokens, kind: optimizer.kind, optimizerStep: optimizer.step };
}
