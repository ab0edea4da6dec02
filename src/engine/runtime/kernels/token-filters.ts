/** Candidate tokens with unnormalized probabilities. */
export interface Candidates {
  ids: Int32Array;
  probabilities: Float64Array;
  count: number;
}

/** Returns the k-th largest value, using a heap of the k largest so far. */
export function kthLargest(weights: Float32Array, k: number): number {
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

/** Reused, because allocating an array of the vocabulary's size takes longer than filling it. */
let scratch = new Int32Array(0);

/** Keeps tokens of positive probability >= threshold, in order of their ids. */
export function filterThreshold(weights: Float32Array, threshold: number): Candidates {
  // Positive floats sort like their bits, and integers are compared faster, four at once.
  const bits = new Int32Array(weights.buffer, weights.byteOffset, weights.length);
  const highestExcluded = Math.max(0, new Int32Array(Float32Array.of(threshold).buffer)[0] - 1);
  if (scratch.length < weights.length) scratch = new Int32Array(weights.length);
  const all = scratch;
  let count = 0;
  let i = 0;
  for (; i + 3 < bits.length; i += 4) {
    const a = highestExcluded - bits[i];
    const b = highestExcluded - bits[i + 1];
    const c = highestExcluded - bits[i + 2];
    const d = highestExcluded - bits[i + 3];
    if ((a | b | c | d) >= 0) continue;
    if (a < 0) all[count++] = i;
    if (b < 0) all[count++] = i + 1;
    if (c < 0) all[count++] = i + 2;
    if (d < 0) all[count++] = i + 3;
  }
  for (; i < bits.length; i++) if (bits[i] > highestExcluded) all[count++] = i;
  const probabilities = new Float64Array(count);
  for (let k = 0; k < count; k++) probabilities[k] = weights[all[k]];
  return { ids: all.slice(0, count), probabilities, count };
}

/**
 * Positive floats sort like their bits; the exponent and four bits of the mantissa form 4,096
 * buckets.
 */
const BUCKET_SHIFT = 19;
const BUCKETS = 2 ** (31 - BUCKET_SHIFT);

/**
 * Keeps the fewest most probable tokens whose mass reaches topP, of probabilities with the sum 1.
 * Only the bucket at the edge is sorted, as sorting the vocabulary would dominate the cost of
 * sampling.
 */
export function filterTopP(weights: Float32Array, topP: number): Candidates {
  // Tokens below this have less than 1 - topP of the mass together, so the others reach topP.
  const kept = filterThreshold(weights, (0.999 * (1 - topP)) / weights.length);
  const bits = new Uint32Array(weights.buffer, weights.byteOffset, weights.length);
  const masses = new Float64Array(BUCKETS);
  for (let i = 0; i < kept.count; i++) masses[bits[kept.ids[i]] >>> BUCKET_SHIFT] += kept.probabilities[i];
  let cumulativeMass = 0;
  let edgeBucket = BUCKETS - 1;
  while (edgeBucket > 0 && (masses[edgeBucket] === 0 || cumulativeMass + masses[edgeBucket] < topP))
    cumulativeMass += masses[edgeBucket--];
  const atEdge: number[] = [];
  let count = 0;
  for (let i = 0; i < kept.count; i++) {
    const bucket = bits[kept.ids[i]] >>> BUCKET_SHIFT;
    if (bucket === edgeBucket) {
      atEdge.push(kept.ids[i]);
    } else if (bucket > edgeBucket) {
      kept.ids[count] = kept.ids[i];
      kept.probabilities[count++] = kept.probabilities[i];
    }
  }
  atEdge.sort((a, b) => weights[b] - weights[a] || a - b);
  for (const id of atEdge) {
    if (count > 0 && cumulativeMass >= topP) break;
    kept.ids[count] = id;
    kept.probabilities[count++] = weights[id];
    cumulativeMass += weights[id];
  }
  return { ids: kept.ids, probabilities: kept.probabilities, count };
}

/** Applies top-p among the tokens kept by top-k, relative to their mass. */
export function filterTopPAmong({ ids, probabilities, count }: Candidates, topP: number): Candidates {
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

export function filterMinP({ ids, probabilities, count }: Candidates, minP: number): Candidates {
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

export function sum(values: ArrayLike<number>, count: number): number {
  let total = 0;
  for (let i = 0; i < count; i++) total += values[i];
  return total;
}
