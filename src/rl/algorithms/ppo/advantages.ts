import { concatenate } from "../shared/arrays.js";
import { generalizedAdvantages, type Advantages, type GaeSteps } from "../shared/gae.js";
import { tokenRewards, type TokenRewards } from "../shared/kl.js";
import { invalidArgument } from "../../../core/errors.js";
import { mean, whiten, type NumberArray } from "../shared/statistics.js";
import { checkTurnSpans, broadcastOverTurns, turnStarts, type TurnSpan } from "../shared/turn-spans.js";
import type { PpoConfig } from "./settings.js";
import { whitenBySeat } from "../shared/whiten-by-seat.js";
import { withStateBaselines, type StepStates } from "./state-baseline.js";

/** A scored sample (an episode or a completion); arrays are [tokens], of the policy's tokens. */
export interface ScoredSample {
  /** KL to the reference at each token. */
  readonly kls: NumberArray;
  /** Value of the state before each token. */
  readonly values: NumberArray;
  /** In order; the last turn ends with the last token. */
  readonly turns: readonly (TurnSpan & {
    /** Added to the advantage of the turn's tokens, before advantages are whitened. Default 0. */
    readonly extraAdvantage?: number;
  })[];
  /**
   * Value of the state after the last token if the sample was truncated or is partial. Default 0.
   */
  readonly bootstrap?: number;
  /** States of the turns; required for `stateBaseline`. */
  readonly states?: StepStates;
  /** The seat in a game; advantages are whitened by seat. */
  readonly seat?: number | undefined;
}

/** Rewards and advantages of a sample's tokens. */
export interface SampleAdvantages extends TokenRewards, Advantages {}

type AdvantageConfig = Pick<PpoConfig, "gamma" | "lam" | "advantageLevel" | "whitenRewards" | "whitenAdvantages"> &
  Partial<Pick<PpoConfig, "stateBaseline" | "minAdvantageStd">>;

/**
 * Computes advantages and returns of a batch. At level "token", gamma and lam count the policy's
 * tokens, and the reward of a turn is received with its last token. At level "turn" they count
 * turns: the reward of a turn includes its tokens' KL penalties, its value is that before its first
 * token, and its tokens share its advantage and return.
 * @throws INVALID_ARGUMENT for turns that do not partition a sample's tokens.
 */
export function ppoAdvantages(
  samples: readonly ScoredSample[],
  { klCoef, minAdvantageStd = 0, ...config }: AdvantageConfig & { readonly klCoef: number },
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
  const headSteps = samples.map((sample, i) => level.toSteps(sample, rewards[i].rewards));
  const steps =
    config.stateBaseline === true
      ? withStateBaselines(
          headSteps,
          samples.map(({ states }) => states!),
          config.gamma,
        )
      : headSteps;
  const stepAdvantages = batchAdvantages(steps, { ...config, whitenAdvantages: false });
  const tokenAdvantages = stepAdvantages.map((advantages, i) =>
    addToTurns(samples[i], level.toTokens(samples[i], advantages)),
  );
  const whitened = config.whitenAdvantages
    ? whitenBySeat(
        tokenAdvantages.map((row) => row.advantages),
        samples.map(({ seat }) => seat),
        { minStd: minAdvantageStd * rootMeanSquare(concatenate(stepAdvantages.map(({ returns }) => returns))) },
      )
    : [];
  return tokenAdvantages.map((row, i) => ({ ...rewards[i], ...row, advantages: whitened[i] ?? row.advantages }));
}

/**
 * Computes advantages and returns of sequences of steps, with rewards and advantages whitened over
 * all steps, as TRL's compute_advantages. `masks` select the steps whose mean and variance are
 * used. Returns are computed before advantages are whitened.
 */
export function batchAdvantages(
  rows: readonly GaeSteps[],
  {
    gamma,
    lam,
    whitenRewards,
    whitenAdvantages,
  }: Omit<AdvantageConfig, "advantageLevel" | "stateBaseline" | "minAdvantageStd">,
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

const rootMeanSquare = (x: NumberArray) => (x.length === 0 ? 0 : Math.sqrt(mean(Array.from(x, (value) => value ** 2))));

/** Converts samples to steps of GAE, and results back to tokens. */
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

function addToTurns({ turns }: ScoredSample, { advantages, returns }: Advantages): Advantages {
  const added = broadcastOverTurns(
    turns,
    turns.map(({ extraAdvantage = 0 }) => extraAdvantage),
  );
  return { advantages: advantages.map((advantage, i) => advantage + added[i]), returns };
}

function bootstrapAtEnd(length: number, value = 0): Float64Array {
  return new Float64Array(length).fill(value, length - 1);
}

/** Applies a function to the concatenated rows and splits the result. */
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
