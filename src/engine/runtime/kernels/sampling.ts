import { LlamaGymError } from "../../../core/errors.js";
import {
  filterMinP,
  filterThreshold,
  filterTopP,
  filterTopPAmong,
  kthLargest,
  sum,
  type Candidates,
} from "./token-filters.js";

/** Sampling parameters, with Transformers' names and order of application. */
export interface SamplingParams {
  /** 0 selects the most probable token. */
  readonly temperature: number;
  /** Keeps the k most probable tokens (and ties with the last); 0 keeps all. */
  readonly topK: number;
  /** Keeps the most probable tokens until their mass reaches topP; 1 keeps all. */
  readonly topP: number;
  /** Keeps tokens at least minP times as probable as the most probable one; 0 keeps all. */
  readonly minP: number;
  /** Divides (multiplies, if negative) the logits of tokens seen before; 1 disables it. */
  readonly repetitionPenalty: number;
}

export interface RowLogits {
  /** [vocabulary] */
  readonly logits: Float32Array;
  /** softmax(logits / temperature) [vocabulary]; unused where the logits must be changed first. */
  readonly probabilities: Float32Array;
}

export interface SampledToken {
  readonly token: number;
  /** Natural log-probability of the token under the distribution it was drawn from. */
  readonly logProb: number;
}

/** A distribution to draw from: candidates, or probabilities of the whole vocabulary. */
export type TokenDistribution = Readonly<Candidates> | Float32Array;

/**
 * Draws a token with a uniform number in [0, 1) from the tokens that the parameters keep, or only
 * from `allowedTokens`.
 * @throws RUNTIME_FAILED when the logits are not finite.
 */
export function sampleToken(
  row: RowLogits,
  params: SamplingParams,
  seenTokens: ArrayLike<number>,
  uniform: number,
  allowedTokens?: Int32Array,
): SampledToken {
  if (params.temperature === 0)
    return { token: argMax(applyRepetitionPenalty(row.logits, params, seenTokens), allowedTokens), logProb: 0 };
  return sampleFromDistribution(tokenDistribution(row, params, seenTokens, allowedTokens), uniform);
}

/** Whether parameters exclude tokens from the distribution. */
export function filtersTokens({ topK, topP, minP }: SamplingParams): boolean {
  return topK > 0 || topP < 1 || minP > 0;
}

/** Returns what `sampleToken` draws from at a temperature above 0. */
export function tokenDistribution(
  row: RowLogits,
  params: SamplingParams,
  seenTokens: ArrayLike<number>,
  allowedTokens?: Int32Array,
): TokenDistribution {
  const isUnchanged = !filtersTokens(params) && params.repetitionPenalty === 1;
  return isUnchanged && allowedTokens === undefined
    ? row.probabilities
    : filterCandidates(row, params, seenTokens, allowedTokens);
}

/** Returns the tokens of a distribution that filters or a constraint limit, in ascending order. */
export function listTokens(distribution: TokenDistribution): Int32Array | undefined {
  return distribution instanceof Float32Array ? undefined : distribution.ids.slice(0, distribution.count).sort();
}

/**
 * Draws a token with a uniform number in [0, 1). @throws RUNTIME_FAILED when no token has a
 * probability.
 */
export function sampleFromDistribution(distribution: TokenDistribution, uniform: number): SampledToken {
  if (distribution instanceof Float32Array) {
    const token = drawIndex(distribution, distribution.length, uniform);
    return { token, logProb: Math.log(distribution[token]) };
  }
  const { ids, probabilities, count } = distribution;
  const mass = sum(probabilities, count);
  const i = drawIndex(probabilities, count, uniform * mass);
  return { token: ids[i], logProb: Math.log(probabilities[i] / mass) };
}

/**
 * Draws by inverse transform sampling: returns the index at which the cumulative weight exceeds
 * `target`.
 */
function drawIndex(weights: Float32Array | Float64Array, count: number, target: number): number {
  let remaining = target;
  let last = -1;
  for (let i = 0; i < count; i++) {
    const weight = weights[i];
    if (weight > 0) last = i;
    remaining -= weight;
    if (remaining < 0) break;
  }
  if (last === -1) throw notFiniteError();
  return last;
}

/** Below this, a float32 probability has lost precision or is zero. */
const MIN_EXACT_PROBABILITY = 1e-30;

/**
 * Returns a token's log-probability from the logits [vocabulary] and their softmax, also where the
 * latter underflowed.
 */
export function rawLogProb(logits: Float32Array, rawProbabilities: Float32Array, token: number): number {
  if (rawProbabilities[token] >= MIN_EXACT_PROBABILITY) return Math.log(rawProbabilities[token]);
  const best = argMax(logits);
  return logits[token] - logits[best] + Math.log(rawProbabilities[best]);
}

/** Returns the `count` most probable tokens with their log-probabilities, most probable first. */
export function mostProbable(logits: Float32Array, rawProbabilities: Float32Array, count: number): SampledToken[] {
  const { ids } = filterThreshold(rawProbabilities, kthLargest(rawProbabilities, Math.min(count, logits.length)));
  return Array.from(ids, (token) => ({ token, logProb: rawLogProb(logits, rawProbabilities, token) }))
    .sort((a, b) => b.logProb - a.logProb || a.token - b.token)
    .slice(0, count);
}

/** The error of logits from which no token can be drawn. */
export function notFiniteError(): LlamaGymError {
  return new LlamaGymError(
    "RUNTIME_FAILED",
    "The model's logits are not finite, so no token can be sampled. Its weights are corrupt or training diverged.",
  );
}

/**
 * Returns the first index of the largest logit, among `allowedTokens` if given.
 * @throws RUNTIME_FAILED when one of them is NaN or infinite, or all are -infinity.
 */
export function argMax(logits: Float32Array, allowedTokens?: Int32Array): number {
  let best = -1;
  let value = -Infinity;
  const count = allowedTokens?.length ?? logits.length;
  for (let i = 0; i < count; i++) {
    const id = allowedTokens === undefined ? i : allowedTokens[i];
    if (logits[id] > value) {
      value = logits[id];
      best = id;
    } else if (Number.isNaN(logits[id])) throw notFiniteError();
  }
  if (best === -1 || value === Infinity) throw notFiniteError();
  return best;
}

function applyRepetitionPenalty(
  logits: Float32Array,
  { repetitionPenalty }: SamplingParams,
  seenTokens: ArrayLike<number>,
): Float32Array {
  if (repetitionPenalty === 1) return logits;
  const result = Float32Array.from(logits);
  for (const id of new Set(Array.from(seenTokens))) {
    const logit = logits[id];
    result[id] = logit < 0 ? logit * repetitionPenalty : logit / repetitionPenalty;
  }
  return result;
}

/** Returns softmax(logits / temperature). */
function applyTemperature(logits: Float32Array, temperature: number): Float32Array {
  let maxLogit = -Infinity;
  for (let i = 0; i < logits.length; i++) if (logits[i] > maxLogit) maxLogit = logits[i];
  const weights = new Float32Array(logits.length);
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += weights[i] = Math.exp((logits[i] - maxLogit) / temperature);
  for (let i = 0; i < logits.length; i++) weights[i] /= sum;
  return weights;
}

function filterCandidates(
  row: RowLogits,
  params: SamplingParams,
  seenTokens: ArrayLike<number>,
  allowedTokens: Int32Array | undefined,
): Candidates {
  const { temperature, topK, topP, minP, repetitionPenalty } = params;
  const isPenalized = repetitionPenalty !== 1;
  let weights = isPenalized
    ? applyTemperature(applyRepetitionPenalty(row.logits, params, seenTokens), temperature)
    : row.probabilities;
  if (allowedTokens !== undefined) {
    // Probabilities of the allowed tokens may have underflowed in the full softmax, so start from
    // their logits.
    const logits = applyRepetitionPenalty(row.logits, params, seenTokens);
    weights = applyTemperature(
      Float32Array.from(allowedTokens, (id) => logits[id]),
      temperature,
    );
  }
  let kept = topK > 0 && topK < weights.length ? filterThreshold(weights, kthLargest(weights, topK)) : undefined;
  if (topP < 1) kept = kept === undefined ? filterTopP(weights, topP) : filterTopPAmong(kept, topP);
  if (minP > 0) kept = filterMinP(kept ?? filterThreshold(weights, 0), minP);
  kept ??= filterThreshold(weights, 0);
  if (kept.count === 0) throw notFiniteError();
  if (allowedTokens !== undefined) for (let i = 0; i < kept.count; i++) kept.ids[i] = allowedTokens[kept.ids[i]];
  return kept;
}
