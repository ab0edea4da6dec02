import { LlamaGymError } from "../../../core/errors.js";

/** How a token is chosen from a distribution; the names and the order of effect are Transformers'. */
export interface SamplingParams {
  /** 0 takes the most probable token. */
  readonly temperature: number;
  /** Keeps the k most probable tokens (and all that tie with the last); 0 keeps all. */
  readonly topK: number;
  /** Keeps the most probable tokens until their mass reaches topP; 1 keeps all. */
  readonly topP: number;
  /** Keeps tokens at least minP times as probable as the most probable; 0 keeps all. */
  readonly minP: number;
  /** Divides (or multiplies, where negative) the logits of tokens seen before; 1 leaves them. */
  readonly repetitionPenalty: number;
}

export interface RowLogits {
  /** [vocabulary] */
  readonly logits: Float32Array;
  /** softmax(logits / temperature), computed by the graph; ignored where logits must be changed first. */
  readonly probabilities: Float32Array;
}

export interface SampledToken {
  readonly token: number;
  /** Natural logarithm of the token's probability under the distribution that it was drawn from. */
  readonly logProb: number;
}

/** The tokens that can be drawn and their probabilities, up to a common factor. */
interface Candidates {
  ids: Int32Array;
  probabilities: Float64Array;
  count: number;
}

/** What a token is drawn from: some tokens with their probabilities up to a common factor, or the whole vocabulary in order. */
export type TokenDistribution = Readonly<Candidates> | Float32Array;

/** The distribution [vocabulary] that `sampleToken` draws from; for tests and for reading. */
export function tokenProbabilities(
  row: RowLogits,
  params: SamplingParams,
  seenTokens: ArrayLike<number>,
  allowedTokens?: Int32Array,
): Float64Array {
  const { ids, probabilities, count } = filterCandidates(row, params, seenTokens, allowedTokens);
  const result = new Float64Array(row.logits.length);
  const mass = sum(probabilities, count);
  for (let i = 0; i < count; i++) result[ids[i]] = probabilities[i] / mass;
  return result;
}

/**
 * Draws a token by a uniform number in [0, 1), from the most probable tokens that the settings keep, or from `allowed` only.
 * Throws INVALID_ARGUMENT when the scores are not finite.
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

/** What `sampleToken` draws from at a temperature above 0. */
export function tokenDistribution(
  row: RowLogits,
  params: SamplingParams,
  seenTokens: ArrayLike<number>,
  allowedTokens?: Int32Array,
): TokenDistribution {
  const isUnfiltered = params.topK === 0 && params.topP >= 1 && params.minP === 0 && params.repetitionPenalty === 1;
  return isUnfiltered && allowedTokens === undefined
    ? row.probabilities
    : filterCandidates(row, params, seenTokens, allowedTokens);
}

/** Draws by a uniform number in [0, 1). Throws RUNTIME_FAILED when no token has a probability. */
export function sampleFromDistribution(distribution: TokenDistribution, uniform: number): SampledToken {
  if (distribution instanceof Float32Array) return sampleCumulative(distribution, uniform);
  const { ids, probabilities, count } = distribution;
  const mass = sum(probabilities, count);
  let remaining = uniform * mass;
  let last = count - 1;
  for (let i = 0; i < count; i++) {
    remaining -= probabilities[i];
    if (remaining < 0) {
      last = i;
      break;
    }
  }
  return { token: ids[last], logProb: Math.log(probabilities[last] / mass) };
}

/** Below this a float32 probability has lost digits, or is zero. */
const MIN_EXACT_PROBABILITY = 1e-30;

/** A token's log-probability, from the logits [vocabulary] and their softmax; also where that has underflowed. */
export function rawLogProb(logits: Float32Array, rawProbabilities: Float32Array, token: number): number {
  if (rawProbabilities[token] >= MIN_EXACT_PROBABILITY) return Math.log(rawProbabilities[token]);
  const best = argMax(logits);
  return logits[token] - logits[best] + Math.log(rawProbabilities[best]);
}

/** The inverse of the cumulative distribution over the whole vocabulary. */
function sampleCumulative(probabilities: Float32Array, uniform: number): SampledToken {
  let remaining = uniform;
  let last = -1;
  for (let i = 0; i < probabilities.length; i++) {
    const p = probabilities[i];
    if (p > 0) last = i;
    remaining -= p;
    if (remaining < 0) break;
  }
  if (last === -1) throw notFiniteError();
  return { token: last, logProb: Math.log(probabilities[last]) };
}

function notFiniteError(): LlamaGymError {
  return new LlamaGymError(
    "RUNTIME_FAILED",
    "The model's scores are not finite, so no token can be drawn; its weights are broken or training diverged.",
  );
}

/** The first of the largest; among `allowed` where given. */
export function argMax(logits: Float32Array, allowedTokens?: Int32Array): number {
  let best = -1;
  let value = -Infinity;
  const count = allowedTokens?.length ?? logits.length;
  for (let i = 0; i < count; i++) {
    const id = allowedTokens === undefined ? i : allowedTokens[i];
    if (logits[id] > value) {
      value = logits[id];
      best = id;
    }
  }
  if (best === -1) throw notFiniteError();
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

/** exp((logit - largest) / temperature), not normalised. */
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
    // Among few tokens the common normaliser may have swallowed them all: start again from their logits.
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

/** The k-th largest value, by a heap of the k largest seen so far. */
function kthLargest(weights: Float32Array, k: number): number {
  const heap = weights.slice(0, k).sort();
  for (let i = k; i < weights.length; i++) {
    const value = weights[i];
    if (value <= heap[0]) continue;
    let position = 0;
    for (;;) {
      let child = 2 * position + 1;
      if (child >= k) break;
      if (child + 1 < k && heap[child + 1] < heap[child]) child++;
      if (heap[child] >= value) break;
      heap[position] = heap[child];
      position = child;
    }
    heap[position] = value;
  }
  return heap[0];
}

/** The tokens of positive probability that is at least the floor, in the order of their ids. */
function filterThreshold(weights: Float32Array, threshold: number): Candidates {
  let count = 0;
  for (let i = 0; i < weights.length; i++) if (weights[i] >= threshold && weights[i] > 0) count++;
  const ids = new Int32Array(count);
  const probabilities = new Float64Array(count);
  count = 0;
  for (let i = 0; i < weights.length; i++) {
    if (!(weights[i] >= threshold && weights[i] > 0)) continue;
    ids[count] = i;
    probabilities[count++] = weights[i];
  }
  return { ids, probabilities, count };
}

/** Positive floats sort as their bits do; the exponent and four bits of the mantissa make 4,096 classes of like size. */
const BUCKET_SHIFT = 19;
const BUCKETS = 2 ** (31 - BUCKET_SHIFT);

/**
 * The fewest most probable tokens whose mass reaches topP. Only those of the class at the edge are sorted: sorting the
 * vocabulary costs more than all the rest of sampling.
 */
function filterTopP(weights: Float32Array, topP: number): Candidates {
  const bits = new Uint32Array(weights.buffer, weights.byteOffset, weights.length);
  const masses = new Float64Array(BUCKETS);
  let total = 0;
  for (let i = 0; i < weights.length; i++) {
    if (!(weights[i] > 0)) continue;
    masses[bits[i] >>> BUCKET_SHIFT] += weights[i];
    total += weights[i];
  }
  const targetMass = topP * total;
  let cumulativeMass = 0;
  let edgeBucket = BUCKETS - 1;
  while (edgeBucket > 0 && cumulativeMass + masses[edgeBucket] < targetMass) cumulativeMass += masses[edgeBucket--];
  const kept = filterThreshold(weights, new Float32Array(Uint32Array.of(edgeBucket << BUCKET_SHIFT).buffer)[0]);
  const atEdge: number[] = [];
  let count = 0;
  for (let i = 0; i < kept.count; i++) {
    if (bits[kept.ids[i]] >>> BUCKET_SHIFT === edgeBucket) {
      atEdge.push(kept.ids[i]);
    } else {
      kept.ids[count] = kept.ids[i];
      kept.probabilities[count++] = kept.probabilities[i];
    }
  }
  atEdge.sort((a, b) => weights[b] - weights[a] || a - b);
  for (const id of atEdge) {
    if (count > 0 && cumulativeMass >= targetMass) break;
    kept.ids[count] = id;
    kept.probabilities[count++] = weights[id];
    cumulativeMass += weights[id];
  }
  return { ids: kept.ids, probabilities: kept.probabilities, count };
}

/** The same among tokens that top-k left: their own mass counts as all. */
function filterTopPAmong({ ids, probabilities, count }: Candidates, topP: number): Candidates {
  const order = Uint32Array.from({ length: count }, (_, i) => i).sort(
    (a, b) => probabilities[b] - probabilities[a] || ids[a] - ids[b],
  );
  const targetMass = topP * sum(probabilities, count);
  let cumulativeMass = 0;
  let kept = 0;
  while (kept < count && (kept === 0 || cumulativeMass < targetMass)) cumulativeMass += probabilities[order[kept++]];
  const chosen = order.subarray(0, kept);
  return {
    ids: Int32Array.from(chosen, (i) => ids[i]),
    probabilities: Float64Array.from(chosen, (i) => probabilities[i]),
    count: kept,
  };
}

function filterMinP({ ids, probabilities, count }: Candidates, minP: number): Candidates {
  let maxProbability = 0;
  for (let i = 0; i < count; i++) maxProbability = Math.max(maxProbability, probabilities[i]);
  let kept = 0;
  for (let i = 0; i < count; i++) {
    if (probabilities[i] < minP * maxProbability) continue;
    ids[kept] = ids[i];
    probabilities[kept++] = probabilities[i];
  }
  return { ids, probabilities, count: kept };
}

function sum(values: ArrayLike<number>, count: number): number {
  let total = 0;
  for (let i = 0; i < count; i++) total += values[i];
  return total;
}
