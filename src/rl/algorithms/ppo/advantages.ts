import { concatenate } from "../shared/arrays.js";
import { generalizedAdvantages, type Advantages, type GaeSteps } from "../shared/gae.js";
import { tokenRewards, type TokenRewards } from "../shared/kl.js";
import { invalidArgument } from "../../../core/errors.js";
import { whiten, type NumberArray } from "../shared/statistics.js";
import { checkTurnSpans, broadcastOverTurns, turnStarts, type TurnSpan } from "../shared/turn-spans.js";
import type { PpoConfig } from "./settings.js";

/** What is known of a sample (an episode, or a reply) once it is scored; arrays are [tokens], of tokens that the policy wrote. */
export interface ScoredSample {
  /** Divergence from the reference at each token. */
  readonly kls: NumberArray;
  /** Value of the state before each token. */
  readonly values: NumberArray;
  /** In order; the last one ends with the last token. */
  readonly turns: readonly TurnSpan[];
  /** Value of the state after the last token, where the sample was cut and not over; 0 by default. */
  readonly bootstrap?: number;
}

/** What PPO's loss needs for each token of a sample, before and after whitening over the batch. */
export interface SampleAdvantages extends TokenRewards, Advantages {}

type AdvantageConfig = Pick<PpoConfig, "gamma" | "lam" | "advantageLevel" | "whitenRewards" | "whitenAdvantages">;

/**
 * Advantages and returns of a batch. At level "token", gamma and lam count the tokens that the policy wrote, and a turn's reward
 * comes with its last token. At level "turn" they count turns: a turn's reward is the environment's and its tokens' penalties,
 * its value that before its first token, and all its tokens share its advantage and its return.
 * Throws INVALID_ARGUMENT for turns that do not divide a sample's tokens.
 */
export function ppoAdvantages(
  samples: readonly ScoredSample[],
  { klCoef, ...config }: AdvantageConfig & { readonly klCoef: number },
): SampleAdvantages[] {
  samples.forEach(checkSample);
  const level = advantageLevels[config.advantageLevel];
  const rewards = samples.map(({ kls, turns }) =>
    tokenRewards(
      kls,
      klCoef,
      turns.map(({ reward }) => reward),
      turns.map(({ end }) => end - 1),
    ),
  );
  const steps = samples.map((sample, i) => level.toSteps(sample, rewards[i].rewards));
  const stepAdvantages = batchAdvantages(steps, { ...config, whitenAdvantages: false });
  const tokenAdvantages = stepAdvantages.map((advantages, i) => level.toTokens(samples[i], advantages));
  const whitened = config.whitenAdvantages
    ? mapFlattened(
        tokenAdvantages.map((row) => row.advantages),
        (all) => whiten(all),
      )
    : [];
  return tokenAdvantages.map((row, i) => ({ ...rewards[i], ...row, advantages: whitened[i] ?? row.advantages }));
}

/**
 * Advantages and returns of rows of steps, with rewards and advantages whitened over all rows, as TRL's compute_advantages.
 * `masks` say which steps count for the whitening; returns are those before advantages are whitened.
 */
export function batchAdvantages(
  rows: readonly GaeSteps[],
  { gamma, lam, whitenRewards, whitenAdvantages }: Omit<AdvantageConfig, "advantageLevel">,
  masks?: readonly NumberArray[],
): Advantages[] {
  const mask = masks === undefined ? undefined : concatenate(masks);
  const rewards = rows.map((row) => row.rewards);
  const scaled = whitenRewards ? mapFlattened(rewards, (all) => whiten(all, { mask, shiftMean: false })) : rewards;
  const estimates = rows.map((row, i) => generalizedAdvantages({ ...row, rewards: scaled[i] }, { gamma, lam }));
  if (!whitenAdvantages) return estimates;
  const whitened = mapFlattened(
    estimates.map(({ advantages }) => advantages),
    (all) => whiten(all, { mask }),
  );
  return estimates.map(({ returns }, i) => ({ advantages: whitened[i], returns }));
}

/** How a sample becomes steps, and how what is found for steps becomes that of tokens. */
interface AdvantageLevel {
  toSteps(sample: ScoredSample, rewards: Float64Array): GaeSteps;
  toTokens(sample: ScoredSample, advantages: Advantages): Advantages;
}

const advantageLevels: Readonly<Record<PpoConfig["advantageLevel"], AdvantageLevel>> = {
  token: {
    toSteps: ({ values, bootstrap }, rewards) => ({
      rewards,
      values,
      bootstrap: bootstrapAtEnd(values.length, bootstrap),
    }),
    toTokens: (_, advantages) => advantages,
  },
  turn: {
    toSteps: ({ values, turns, bootstrap }, rewards) => {
      const starts = turnStarts(turns);
      return {
        rewards: turns.map(({ end }, i) => rewards.subarray(starts[i], end).reduce((sum, reward) => sum + reward, 0)),
        values: starts.map((start) => values[start]),
        bootstrap: bootstrapAtEnd(turns.length, bootstrap),
      };
    },
    toTokens: ({ turns }, { advantages, returns }) => ({
      advantages: broadcastOverTurns(turns, advantages),
      returns: broadcastOverTurns(turns, returns),
    }),
  },
};

function bootstrapAtEnd(length: number, value = 0): Float64Array {
  return new Float64Array(length).fill(value, length - 1);
}

/** A function of all numbers of a batch, whose result is divided into rows again. */
function mapFlattened(rows: readonly NumberArray[], transform: (all: Float64Array) => Float64Array): Float64Array[] {
  const result = transform(concatenate(rows));
  let start = 0;
  return rows.map(({ length }) => result.subarray(start, (start += length)));
}

function checkSample({ kls, values, turns }: ScoredSample, index: number): void {
  checkTurnSpans(turns, kls.length, index);
  if (values.length !== kls.length)
    throw invalidArgument(`Sample ${index} has ${kls.length} tokens, but values for ${values.length}.`);
}
