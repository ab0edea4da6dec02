import { invalidArgument } from "../core/errors.js";
import { RandomStream } from "../core/random/random-stream.js";

/**
 * Creates a random stream equal to Gymnasium's `np_random(seed)`, and returns its seed, drawn from
 * entropy by default.
 */
export function createSeededStream(seed?: number | bigint): { stream: RandomStream; seed: number | bigint } {
  const used = seed ?? new RandomStream().integers(0, 2 ** 48);
  return { stream: new RandomStream(checkSeed(used)), seed: used };
}

function checkSeed(seed: unknown): number | bigint {
  const isInteger = typeof seed === "bigint" || Number.isSafeInteger(seed);
  if (!isInteger) throw invalidArgument(`Seed must be an integer (a bigint above 2^53), actual value: ${String(seed)}`);
  const value = seed as number | bigint;
  if (value < 0) throw invalidArgument(`Seed must be greater or equal to zero, actual value: ${value}`);
  return value;
}
