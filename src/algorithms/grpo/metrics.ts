import { concatenate } from "../shared/arrays.js";
import { approximateKl } from "../shared/kl.js";
import { mean, nanMean, type Numbers } from "../shared/statistics.js";
import { ratioBounds } from "../shared/surrogate.js";
import type { GroupAdvantages } from "./advantages.js";
import type { GrpoConfig, LossType } from "./config.js";
import type { GrpoSequence } from "./inputs.js";

/** What grpoLoss gives for each token of an optimiser step, sequence after sequence: its runs' statistics put together. */
export interface GrpoStatistics {
  readonly ratio: Numbers;
  readonly kl?: Numbers;
  readonly entropy?: Numbers;
  readonly phi?: Numbers;
}

type MetricConfig = Pick<GrpoConfig, "lossType" | "importanceSamplingLevel" | "epsilon" | "epsilonHigh">;

const CLIPPED: readonly LossType[] = ["grpo", "bnpo", "dr_grpo", "dapo", "luspo"];

/**
 * An optimiser step's metrics under TRL 1.16's names, and PPO's approxkl. kl and entropy are means over tokens; shares of
 * clipped ratios are over tokens, or over sequences where ratios are theirs. clip_ratio/low_min and high_max are the least and
 * most of any sequence.
 */
export function grpoMetrics(
  { ratio, kl, entropy, phi }: GrpoStatistics,
  sequences: readonly Pick<GrpoSequence, "advantages">[],
  { lossType, importanceSamplingLevel, epsilon, epsilonHigh }: MetricConfig,
): Record<string, number> {
  const advantages = concatenate(sequences.map((sequence) => sequence.advantages));
  const lengths = sequences.map((sequence) => sequence.advantages.length);
  const shareOf = (isClipped: (ratio: number, advantage: number) => boolean) => {
    const tokens = Array.from(ratio, (value, t) => (isClipped(value, advantages[t]) ? 1 : 0));
    return summarise(perSequence(tokens, lengths), importanceSamplingLevel);
  };
  const bounds = ratioBounds({ epsilon, epsilonHigh });
  const isLow = (value: number, advantage: number) => value < bounds.low && advantage < 0;
  const isHigh = (value: number, advantage: number) => value > bounds.high && advantage > 0;
  const [low, high] = [shareOf(isLow), shareOf(isHigh)];
  return {
    ...(kl === undefined ? {} : { kl: meanOrZero(kl) }),
    ...(entropy === undefined ? {} : { entropy: meanOrZero(entropy) }),
    "policy/approxkl_avg": approximateKl(ratio),
    ...(CLIPPED.includes(lossType)
      ? {
          "clip_ratio/low_mean": low.mean,
          "clip_ratio/high_mean": high.mean,
          "clip_ratio/region_mean": shareOf((value, a) => isLow(value, a) || isHigh(value, a)).mean,
          "clip_ratio/low_min": low.least,
          "clip_ratio/high_max": high.most,
        }
      : {}),
    ...(lossType === "cispo"
      ? { cispo_clip_ratio: shareOf((value, a) => value > Math.fround(epsilonHigh) && a > 0).mean }
      : {}),
    // A sequence without tokens has the weight of one that did not move.
    ...(lossType === "vespo" && phi !== undefined
      ? { "vespo/phi_seq_mean": meanOrZero(perSequence(phi, lengths).map(([weight = 1]) => weight)) }
      : {}),
  };
}

function perSequence(tokens: Numbers, lengths: readonly number[]): number[][] {
  const all = Array.from(tokens);
  let start = 0;
  return lengths.map((length) => all.slice(start, (start += length)));
}

/** Mean over tokens, or over sequences where a sequence has one value; then a sequence without tokens has 0. */
function summarise(rows: readonly (readonly number[])[], level: GrpoConfig["importanceSamplingLevel"]) {
  const sequences =
    level === "token"
      ? rows.filter(({ length }) => length > 0).map((row) => mean(row))
      : rows.map(([value = 0]) => value);
  return {
    mean: meanOrZero(level === "token" ? rows.flat() : sequences),
    least: sequences.length === 0 ? 0 : Math.min(...sequences),
    most: Math.max(0, ...sequences),
  };
}

function meanOrZero(x: Numbers): number {
  return x.length === 0 ? 0 : mean(x);
}

/** A standard deviation up to this is 0. */
const ZERO_STD = 1e-8;

/** Rewards of a batch under TRL 1.16's names; samples that could not be scored do not count. */
export function rewardMetrics({ rewards, groupStds }: Omit<GroupAdvantages, "advantages">): Record<string, number> {
  return {
    reward: nanMean(rewards),
    reward_std: nanMean(groupStds),
    frac_reward_zero_std: mean(groupStds.map((std) => (std <= ZERO_STD ? 1 : 0))),
  };
}
