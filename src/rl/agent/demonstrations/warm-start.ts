import type { SftMetrics } from "../../algorithms/sft/sft-learner.js";
import { TurnSftLearner } from "../../algorithms/sft/turn-sft-learner.js";
import type { LanguageModel } from "../../../generation/index.js";
import type { RandomStream } from "../../../core/random/random-stream.js";
import { stream } from "../../../core/random/streams.js";
import { shuffleStratified, toTurnTokens, type ReplayTurn } from "./replay-buffer.js";
import type { OnlineSftConfig } from "./online-sft-settings.js";

/** Callbacks of the warm start. */
export interface WarmStartCallbacks {
  /** Called and awaited after each update. */
  readonly onStep?: (stats: SftMetrics) => void | Promise<void>;
  /** Stops training after the current update. */
  readonly signal?: AbortSignal;
}

/** Keeps the state of a warm start for a run that is resumed. */
export interface WarmStartState {
  /** Restores a learner, if a state was saved. */
  restore(learner: TurnSftLearner): Promise<void>;
  /** Called and awaited after each update. */
  save(learner: TurnSftLearner): Promise<void>;
}

export interface WarmStartOptions extends WarmStartCallbacks {
  readonly config: Pick<OnlineSftConfig, "sftSteps" | "sftBatchSize" | "sftLearningRate">;
  /** Memory of a micro-batch, in tokens. */
  readonly microBatchTokens?: number;
  /** Temperature that the policy samples with. */
  readonly temperature: number;
  /** Seed of the order of turns. */
  readonly seed: number;
  readonly state?: WarmStartState | undefined;
}

/**
 * Trains on demonstrated turns before reinforcement learning: `sftSteps` updates of `sftBatchSize`
 * turns, with a learning rate that decays to 0. All turns are used equally often, and batches are
 * stratified by completion. Returns the last update's metrics, or undefined without turns.
 * @throws INVALID_STATE for a model without trainable parameters.
 */
export async function warmStart(
  model: LanguageModel,
  turns: readonly ReplayTurn[],
  { config, microBatchTokens, temperature, seed, onStep, signal, state }: WarmStartOptions,
): Promise<SftMetrics | undefined> {
  if (turns.length === 0) return undefined;
  const { sftSteps, sftBatchSize, sftLearningRate } = config;
  const learner = await TurnSftLearner.create(model, {
    learningRate: sftLearningRate,
    maxSteps: sftSteps,
    microBatchTokens,
    temperature,
    seed,
  });
  const turnStream = cycle(turns, stream(seed, "warmStartOrder"));
  const draw = () => Array.from({ length: Math.min(sftBatchSize, turns.length) }, () => turnStream.next().value);
  let stats: SftMetrics | undefined;
  try {
    await state?.restore(learner);
    for (let step = 0; step < learner.step; step++) draw();
    while (learner.step < sftSteps) {
      if (signal?.aborted === true) break;
      stats = await learner.update(draw().map(toTurnTokens));
      await onStep?.(stats);
      await state?.save(learner);
    }
  } finally {
    await learner.release();
  }
  return stats;
}

function* cycle(turns: readonly ReplayTurn[], random: RandomStream): Generator<ReplayTurn, never> {
  const kinds = turns.map(({ text }) => text);
  for (;;) for (const i of shuffleStratified(kinds, random)) yield turns[i];
}
