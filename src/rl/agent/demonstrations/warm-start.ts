import { SftLearner, type SftMetrics } from "../../algorithms/sft/sft-learner.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import type { RandomStream } from "../../../core/random/random-stream.js";
import { stream } from "../../../core/random/streams.js";
import type { ReplayTurn } from "./replay-buffer.js";
import { toSftExample } from "./to-sft-example.js";
import type { OnlineSftConfig } from "./online-sft-settings.js";
import { shuffleStratified } from "./shuffle-stratified.js";

export interface WarmStartCallbacks {
  /** Told of each update; what it returns is waited for. */
  readonly onStep?: (stats: SftMetrics) => void | Promise<void>;
  /** Ends it after the update that is under way. */
  readonly signal?: AbortSignal;
}

export interface WarmStartOptions extends WarmStartCallbacks {
  readonly config: Pick<OnlineSftConfig, "sftSteps" | "sftBatchSize" | "sftLearningRate">;
  /** Tokens of one forward and backward pass. */
  readonly microBatchTokens?: number;
  /** Decides the order of the turns. */
  readonly seed: number;
}

/**
 * Learns demonstrated turns before reinforcement learning: `sftSteps` updates of `sftBatchSize` turns at a rate that falls to 0.
 * All turns come equally often, in an order in which each batch holds the different replies about in their shares. Gives the last
 * update's numbers; undefined where there is nothing to learn. Throws INVALID_STATE for a model of which nothing is trained.
 */
export async function warmStart(
  model: LanguageModel,
  turns: readonly ReplayTurn[],
  { config, microBatchTokens, seed, onStep, signal }: WarmStartOptions,
): Promise<SftMetrics | undefined> {
  if (turns.length === 0) return undefined;
  const { sftSteps, sftBatchSize, sftLearningRate } = config;
  const learner = await SftLearner.create(model, {
    learningRate: sftLearningRate,
    maxSteps: sftSteps,
    microBatchTokens,
    seed,
  });
  const turnStream = cycle(turns, stream(seed, "warmStartOrder"));
  let stats: SftMetrics | undefined;
  try {
    for (let step = 0; step < sftSteps; step++) {
      if (signal?.aborted === true) break;
      const batch = Array.from({ length: Math.min(sftBatchSize, turns.length) }, () => turnStream.next().value);
      stats = await learner.update(batch.map(toSftExample));
      await onStep?.(stats);
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
