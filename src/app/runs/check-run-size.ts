import { getHeapStatistics } from "node:v8";
import { formatCount } from "../../core/format.js";
import { invalidArgument } from "../../core/errors.js";
import { configureAlgorithm } from "./algorithm-settings.js";
import { availableMemory } from "./estimate-run-memory.js";
import type { TrainConfig, TrainOptions } from "./run-settings.js";

/**
 * Memory of an environment with its slot, random streams and turn; 25 KB measured for Blackjack.
 */
const ENV_BYTES = 32e3;
/**
 * Memory of a collected turn with the smallest prompts: objects, tokens, log-probabilities; a lower
 * bound.
 */
const TURN_BYTES = 1e3;
/** Memory per token of a micro-batch of the smallest model; a lower bound. */
const TOKEN_BYTES = 1e3;

type RunSize = Pick<TrainConfig, "algorithm" | "numEnvs" | "microBatchTokens" | "episodes" | "turns"> &
  Partial<Pick<TrainConfig, "batchSize" | "numGenerations" | "minTurns">>;

/**
 * Checks the sizes of a run before it starts, by lower bounds of their memory and by what the run
 * can collect.
 * @throws INVALID_ARGUMENT for sizes that need more memory than there is, for a given batch larger
 * than the run, and for an algorithm that asks for what cannot be collected.
 */
export function checkRunSize(
  config: RunSize,
  given: Partial<TrainOptions> = {},
  memory: number = Math.min(availableMemory(), getHeapStatistics().heap_size_limit),
): void {
  const { numEnvs, batchSize = 0, minTurns = 0, microBatchTokens = 0, numGenerations = 0 } = config;
  const sizes = [
    ["numEnvs", numEnvs, ENV_BYTES],
    ["numGenerations", numGenerations, TURN_BYTES],
    ["batchSize", batchSize, TURN_BYTES],
    ["minTurns", minTurns, TURN_BYTES],
    ["microBatchTokens", microBatchTokens, TOKEN_BYTES],
  ] as const;
  for (const [name, value, bytes] of sizes) {
    const limit = Math.floor(memory / bytes);
    if (value > limit)
      throw invalidArgument(
        `\`${name}\` of ${formatCount(value)} needs at least ${formatGigabytes(value * bytes)} of memory, but ` +
          `${formatGigabytes(memory)} are free. Set it to ${formatCount(limit)} or less.`,
      );
  }
  const countsTurns = configureAlgorithm(config).algorithm.rollout()?.kind === "turns";
  const [unit, length] = countsTurns ? (["turns", config.turns] as const) : (["episodes", config.episodes] as const);
  const name = given.batchSize !== undefined ? "batchSize" : "numGenerations";
  if (given[name] !== undefined && length !== undefined && length > 0 && given[name] > length)
    throw invalidArgument(
      `\`${name}\` is ${formatCount(given[name])}, but the run ends after ${formatCount(length)} ${unit}, before its ` +
        `first update. Lower \`${name}\`, or raise \`${unit}\`.`,
    );
}

function formatGigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
