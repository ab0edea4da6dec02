import { concatenate } from "../shared/arrays.js";
import { approximateKl } from "../shared/kl.js";
import { mean, type NumberArray } from "../shared/statistics.js";
import { ratioBounds } from "../shared/clipped-surrogate.js";
import type { GrpoConfig, LossType } from "./settings.js";
import type { GrpoSequence } from "./loss-inputs.js";

/** Per-token statistics of grpoLoss over an update, in the order of its sequences. */
export interface GrpoStatistics {
  readonly ratio: NumberArray;
  readonly kl?: NumberArray;
  readonly entropy?: NumberArray;
  readonly phi?: NumberArray;
}

type MetricConfig = Pick<GrpoConfig, "lossType" | "importanceSamplingLevel" | "epsilon" | "epsilonHigh">;

const CLIPPED_LOSS_TYPES: readonly LossType[] = ["grpo", "bnpo", "dr_grpo", "dapo", "luspo"];

/**
 * Computes metrics under TRL 1.16's names, and PPO's approxkl. kl and entropy are means over
 * tokens; clip ratios are fractions of tokens, or of sequences with sequence-level ratios.
 * clip_ratio/low_min and high_max are the minimum and maximum over sequences.
 */
export function grpoMetrics(
  { ratio, kl, entropy, phi }: GrpoStatistics,
  sequences: readonly Pick<GrpoSequence, "advantages">[],
  { lossType, importanceSamplingLevel, epsilon, epsilonHigh }: MetricConfig,
): Record<string, number> {
  const advantages = concatenate(sequences.map((sequence) => sequence.advantages));
  const lengths = sequences.map((sequence) => sequence.advantages.length);
  const clippedFraction = (isClipped: (ratio: number, advantage: number) => boolean) => {
    const tokens = Array.from(ratio, (value, t) => (isClipped(value, advantages[t]) ? 1 : 0));
    return summarize(splitBySequence(tokens, lengths), importanceSamplingLevel);
  };
  const bounds = ratioBounds({ epsilon, epsilonHigh });
  const isLow = (value: number, advantage: number) => value < bounds.low && advantage < 0;
  const isHigh = (value: number, advantage: number) => value > bounds.high && advantage > 0;
  const [low, high] = [clippedFraction(isLow), clippedFraction(isHigh)];
  return {
    ...(kl === undefined ? {} : { kl: meanOrZero(kl) }),
    ...(entropy === undefined ? {} : { entropy: meanOrZero(entropy) }),
    "policy/approxkl_avg": approximateKl(ratio),
    ...(CLIPPED_LOSS_TYPES.includes(lossType)
      ? {
          "clip_ratio/low_mean": low.mean,
          "clip_ratio/high_mean": high.mean,
          "clip_ratio/region_mean": clippedFraction((value, a) => isLow(value, a) || isHigh(value, a)).mean,
          "clip_ratio/low_min": low.min,
          "clip_ratio/high_max": high.max,
        }
      : {}),
    ...(lossType === "cispo"
      ? { cispo_clip_ratio: clippedFraction((value, a) => value > Math.fround(epsilonHigh) && a > 0).mean }
      : {}),
    // Sequences without tokens have the weight of an unchanged one.
    ...(lossType === "vespo" && phi !== undefined
      ? { "vespo/phi_seq_mean": meanOrZero(splitBySequence(phi, lengths).map(([weight = 1]) => weight)) }
      : {}),
  };
}

function splitBySequence(tokens: NumberArray, lengths: readonly number[]): number[][] {
  const all = Array.from(tokens);
  let start = 0;
  return lengths.map((length) => all.slice(start, (start += length)));
}

/**
 * Mean over tokens, or over sequences with one value each; sequences without tokens then count as
 * 0.
 */
function summarize(rows: readonly (readonly number[])[], level: GrpoConfig["importanceSamplingLevel"]) {
  const sequences =
    level === "token"
      ? rows.filter(({ length }) => length > 0).map((row) => mean(row))
      : rows.map(([value = 0]) => value);
  return {
    mean: meanOrZero(level === "token" ? rows.flat() : sequences),
    min: sequences.length === 0 ? 0 : Math.min(...sequences),
    max: Math.max(0, ...sequences),
  };
}

function meanOrZero(x: NumberArray): number {
  return x.length === 0 ? 0 : mean(x);
}
