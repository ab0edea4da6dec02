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

/** Keeps tokens of positive probability >= threshold, in order of their ids. */
export function filterThreshold(weights: Float32Array, threshold: number): Candidates {
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

/** Positive floats sort like their bits; the exponent and four bits of the mantissa form 4,096 buckets. */
const BUCKET_SHIFT = 19;
const BUCKETS = 2 ** (31 - BUCKET_SHIFT);

/**
 * Keeps the fewest most probable tokens whose mass reaches topP. Only the bucket at the edge is sorted, as sorting the
 * vocabulary would dominate the cost of sampling.
 */
export function filterTopP(weights: Float32Array, topP: number): Candidates {
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
