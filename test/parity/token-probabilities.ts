import { tokenDistribution } from "../../src/engine/runtime/kernels/sampling.js";

/**
 * Returns the normalized distribution [vocabulary] that `sampleToken` draws from at a temperature
 * above 0.
 */
export function tokenProbabilities(...args: Parameters<typeof tokenDistribution>): Float64Array {
  const distribution = tokenDistribution(...args);
  if (distribution instanceof Float32Array) {
    const mass = distribution.reduce((sum, probability) => sum + probability, 0);
    return Float64Array.from(distribution, (probability) => probability / mass);
  }
  const { ids, probabilities, count } = distribution;
  const mass = probabilities.subarray(0, count).reduce((sum, probability) => sum + probability, 0);
  const result = new Float64Array(args[0].logits.length);
  for (let i = 0; i < count; i++) result[ids[i]] = probabilities[i] / mass;
  return result;
}
