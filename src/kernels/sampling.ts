import { LlamaGymError } from "../errors.js";

/** How a token is chosen from a distribution; the names and the order of effect are Transformers'. */
export interface SamplingSettings {
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

export interface RowScores {
  /** [vocabulary] */
  readonly logits: Float32Array;
  /** softmax(logits / temperature), computed by the graph; ignored where logits must be changed first. */
  readonly tempered: Float32Array;
}

export interface Choice {
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
export function distribution(
  scores: RowScores,
  settings: SamplingSettings,
  seen: ArrayLike<number>,
  allowed?: Int32Array,
): Float64Array {
  const { ids, probabilities, count } = candidates(scores, settings, seen, allowed);
  const result = new Float64Array(scores.logits.length);
  const mass = sum(probabilities, count);
  for (let i = 0; i < count; i++) result[ids[i]] = probabilities[i] / mass;
  return result;
}

/**
 * Draws a token by a uniform number in [0, 1), from the most probable tokens that the settings keep, or from `allowed` only.
 * Throws INVALID_ARGUMENT when the scores are not finite.
 */
export function sampleToken(
  scores: RowScores,
  settings: SamplingSettings,
  seen: ArrayLike<number>,
  uniform: number,
  allowed?: Int32Array,
): Choice {
  if (settings.temperature === 0)
    return { token: argMax(penalised(scores.logits, settings, seen), allowed), logProb: 0 };
  return drawToken(tokenDistribution(scores, settings, seen, allowed), uniform);
}

/** What `sampleToken` draws from at a temperature above 0. */
export function tokenDistribution(
  scores: RowScores,
  settings: SamplingSettings,
  seen: ArrayLike<number>,
  allowed?: Int32Array,
): TokenDistribution {
  const plain = settings.topK === 0 && settings.topP >= 1 && settings.minP === 0 && settings.repetitionPenalty === 1;
  return plain && allowed === undefined ? scores.tempered : candidates(scores, settings, seen, allowed);
}

/** Draws by a uniform number in [0, 1). Throws RUNTIME_FAILED when no token has a probability. */
export function drawToken(from: TokenDistribution, uniform: number): Choice {
  if (from instanceof Float32Array) return walk(from, uniform);
  const { ids, probabilities, count } = from;
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
const SMALLEST_EXACT = 1e-30;

/** A token's log-probability, from the logits [vocabulary] and their softmax; also where that has underflowed. */
export function plainLogProb(logits: Float32Array, plain: Float32Array, token: number): number {
  if (plain[token] >= SMALLEST_EXACT) return Math.log(plain[token]);
  const best = argMax(logits);
  return logits[token] - logits[best] + Math.log(plain[best]);
}

/** The inverse of the cumulative distribution over the whole vocabulary. */
function walk(probabilities: Float32Array, uniform: number): Choice {
  let remaining = uniform;
  let last = -1;
  for (let i = 0; i < probabilities.length; i++) {
    const p = probabilities[i];
    if (p > 0) last = i;
    remaining -= p;
    if (remaining < 0) break;
  }
  if (last === -1) throw notFinite();
  return { token: last, logProb: Math.log(probabilities[last]) };
}

function notFinite(): LlamaGymError {
  return new LlamaGymError(
    "RUNTIME_FAILED",
    "The model's scores are not finite, so no token can be drawn; its weights are broken or training diverged.",
  );
}

/** The first of the largest; among `allowed` where given. */
export function argMax(logits: Float32Array, allowed?: Int32Array): number {
  let best = -1;
  let value = -Infinity;
  const count = allowed?.length ?? logits.length;
  for (let i = 0; i < count; i++) {
    const id = allowed === undefined ? i : allowed[i];
    if (logits[id] > value) {
      value = logits[id];
      best = id;
    }
  }
  if (best === -1) throw notFinite();
  return best;
}

function penalised(
  logits: Float32Array,
  { repetitionPenalty }: SamplingSettings,
  seen: ArrayLike<number>,
): Float32Array {
  if (repetitionPenalty === 1) return logits;
  const result = Float32Array.from(logits);
  for (const id of new Set(Array.from(seen))) {
    const logit = logits[id];
    result[id] = logit < 0 ? logit * repetitionPenalty : logit / repetitionPenalty;
  }
  return result;
}

/** exp((logit - largest) / temperature), not normalised. */
function temperedWeights(logits: Float32Array, temperature: number): Float32Array {
  let largest = -Infinity;
  for (let i = 0; i < logits.length; i++) if (logits[i] > largest) largest = logits[i];
  const weights = new Float32Array(logits.length);
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += weights[i] = Math.exp((logits[i] - largest) / temperature);
  for (let i = 0; i < logits.length; i++) weights[i] /= sum;
  return weights;
}

function candidates(
  scores: RowScores,
  settings: SamplingSettings,
  seen: ArrayLike<number>,
  allowed: Int32Array | undefined,
): Candidates {
  const { temperature, topK, topP, minP, repetitionPenalty } = settings;
  const changed = repetitionPenalty !== 1;
  let weights = changed ? temperedWeights(penalised(scores.logits, settings, seen), temperature) : scores.tempered;
  if (allowed !== undefined) {
    // Among few tokens the common normaliser may have swallowed them all: start again from their logits.
    const logits = penalised(scores.logits, settings, seen);
    weights = temperedWeights(
      Float32Array.from(allowed, (id) => logits[id]),
      temperature,
    );
  }
  let kept = topK > 0 && topK < weights.length ? atLeast(weights, kthLargest(weights, topK)) : undefined;
  if (topP < 1) kept = kept === undefined ? nucleus(weights, topP) : nucleusOf(kept, topP);
  if (minP > 0) kept = keepMinP(kept ?? atLeast(weights, 0), minP);
  kept ??= atLeast(weights, 0);
  if (kept.count === 0) throw notFinite();
  if (allowed !== undefined) for (let i = 0; i < kept.count; i++) kept.ids[i] = allowed[kept.ids[i]];
  return kept;
}

/** The k-th largest value, by a heap of the k largest seen so far. */
function kthLargest(weights: Float32Array, k: number): number {
  const heap = weights.slice(0, k).sort();
  for (let i = k; i < weights.length; i++) {
    const value = weights[i];
    if (value <= heap[0]) continue;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= k) break;
      if (child + 1 < k && heap[child + 1] < heap[child]) child++;
      if (heap[child] >= value) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = value;
  }
  return heap[0];
}

/** The tokens of positive probability that is at least the floor, in the order of their ids. */
function atLeast(weights: Float32Array, floor: number): Candidates {
  let count = 0;
  for (let i = 0; i < weights.length; i++) if (weights[i] >= floor && weights[i] > 0) count++;
  const ids = new Int32Array(count);
  const probabilities = new Float64Array(count);
  count = 0;
  for (let i = 0; i < weights.length; i++) {
    if (!(weights[i] >= floor && weights[i] > 0)) continue;
    ids[count] = i;
    probabilities[count++] = weights[i];
  }
  return { ids, probabilities, count };
}

/** Positive floats sort as their bits do; the exponent and four bits of the mantissa make 4,096 classes of like size. */
const CLASS_SHIFT = 19;
const CLASSES = 2 ** (31 - CLASS_SHIFT);

/**
 * The fewest most probable tokens whose mass reaches topP. Only those of the class at the edge are sorted: sorting the
 * vocabulary costs more than all the rest of sampling.
 */
function nucleus(weights: Float32Array, topP: number): Candidates {
  const bits = new Uint32Array(weights.buffer, weights.byteOffset, weights.length);
  const masses = new Float64Array(CLASSES);
  let total = 0;
  for (let i = 0; i < weights.length; i++) {
    if (!(weights[i] > 0)) continue;
    masses[bits[i] >>> CLASS_SHIFT] += weights[i];
    total += weights[i];
  }
  const wanted = topP * total;
  let above = 0;
  let edge = CLASSES - 1;
  while (edge > 0 && above + masses[edge] < wanted) above += masses[edge--];
  const found = atLeast(weights, new Float32Array(Uint32Array.of(edge << CLASS_SHIFT).buffer)[0]);
  const atEdge: number[] = [];
  let count = 0;
  for (let i = 0; i < found.count; i++) {
    if (bits[found.ids[i]] >>> CLASS_SHIFT === edge) {
      atEdge.push(found.ids[i]);
    } else {
      found.ids[count] = found.ids[i];
      found.probabilities[count++] = found.probabilities[i];
    }
  }
  atEdge.sort((a, b) => weights[b] - weights[a] || a - b);
  for (const id of atEdge) {
    if (count > 0 && above >= wanted) break;
    found.ids[count] = id;
    found.probabilities[count++] = weights[id];
    above += weights[id];
  }
  return { ids: found.ids, probabilities: found.probabilities, count };
}

/** The same among tokens that top-k left: their own mass counts as all. */
function nucleusOf({ ids, probabilities, count }: Candidates, topP: number): Candidates {
  const order = Uint32Array.from({ length: count }, (_, i) => i).sort(
    (a, b) => probabilities[b] - probabilities[a] || ids[a] - ids[b],
  );
  const wanted = topP * sum(probabilities, count);
  let above = 0;
  let kept = 0;
  while (kept < count && (kept === 0 || above < wanted)) above += probabilities[order[kept++]];
  const chosen = order.subarray(0, kept);
  return {
    ids: Int32Array.from(chosen, (i) => ids[i]),
    probabilities: Float64Array.from(chosen, (i) => probabilities[i]),
    count: kept,
  };
}

function keepMinP({ ids, probabilities, count }: Candidates, minP: number): Candidates {
  let largest = 0;
  for (let i = 0; i < count; i++) largest = Math.max(largest, probabilities[i]);
  let kept = 0;
  for (let i = 0; i < count; i++) {
    if (probabilities[i] < minP * largest) continue;
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
