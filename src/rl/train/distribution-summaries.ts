import type { TokenDistribution } from "../../engine/runtime/index.js";
import type { RecordedAlternative } from "../tracking/rollouts/rollout-record.js";

/** Allowed tokens of which the most probable are recorded. */
const MAX_ALTERNATIVES = 10;

/**
 * Less probable tokens are left out of the entropy: a vocabulary of 4,096 of them adds less than
 * 1e-4 nats.
 */
const MIN_PROBABILITY = 1e-9;

/** What a recording has of a distribution. */
export interface DistributionSummary {
  /** In nats; null without a distribution. */
  readonly entropy: number | null;
  /** The most probable tokens; without a distribution, the first allowed ones. */
  readonly alternatives: readonly RecordedAlternative[];
}

/**
 * Summaries of the distributions of a recording, each computed once: turns with equal prompts share
 * theirs.
 */
export class DistributionSummaries {
  private readonly known = new Map<TokenDistribution, DistributionSummary>();

  describe(distribution: TokenDistribution | undefined, allowedTokens: Int32Array | undefined): DistributionSummary {
    if (distribution === undefined) {
      const first = Array.from(allowedTokens?.subarray(0, MAX_ALTERNATIVES) ?? []);
      return { entropy: null, alternatives: first.map((token) => ({ token, probability: null })) };
    }
    let summary = this.known.get(distribution);
    if (summary === undefined) this.known.set(distribution, (summary = summarize(distribution)));
    return summary;
  }
}

function summarize(distribution: TokenDistribution): DistributionSummary {
  const isDense = distribution instanceof Float32Array;
  const probabilities = isDense ? distribution : distribution.probabilities;
  const count = isDense ? distribution.length : distribution.count;
  let mass = 0;
  let sum = 0;
  // Positions of the most probable tokens, most probable first.
  const best: number[] = [];
  let lowest = -1;
  for (let i = 0; i < count; i++) {
    const p = probabilities[i];
    mass += p;
    if (p > MIN_PROBABILITY) sum += p * Math.log(p);
    if (p <= lowest) continue;
    let position = best.length;
    while (position > 0 && probabilities[best[position - 1]] < p) position--;
    best.splice(position, 0, i);
    if (best.length > MAX_ALTERNATIVES) best.pop();
    if (best.length === MAX_ALTERNATIVES) lowest = probabilities[best[MAX_ALTERNATIVES - 1]];
  }
  const alternatives = best.map((i) => ({
    token: isDense ? i : distribution.ids[i],
    probability: round(probabilities[i] / mass),
  }));
  return { entropy: round(Math.log(mass) - sum / mass), alternatives };
}

/**
 * Rounds to five significant digits, which a third of the bytes hold; null for what is not finite.
 */
export function round(value: number): number | null {
  if (!Number.isFinite(value)) return null;
  const digits = 4 - Math.floor(Math.log10(Math.abs(value)));
  // Powers of ten up to 1e22 are exact, and their quotients therefore the nearest numbers.
  if (!(digits >= 0 && digits <= 22)) return Number(value.toPrecision(5));
  const scale = 10 ** digits;
  return Math.round(value * scale) / scale;
}
