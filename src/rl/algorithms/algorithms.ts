import { invalidArgument } from "../../core/errors.js";
import { describeValue } from "../../core/format.js";
import type { ConfiguredAlgorithm } from "./define-algorithm.js";
import { grpo } from "./grpo/grpo.js";
import { onlineDpo } from "./online-dpo/online-dpo.js";
import { ppo } from "./ppo/ppo.js";
import { reinforce } from "./reinforce/reinforce.js";
import { rloo } from "./rloo/rloo.js";

/** The built-in algorithms. */
export const algorithms = { ppo, grpo, rloo, reinforce, "online-dpo": onlineDpo } as const;

export type AlgorithmName = keyof typeof algorithms;
export const ALGORITHM_NAMES = Object.keys(algorithms) as readonly AlgorithmName[];

/** The algorithm of an agent or a gateway. */
export interface AlgorithmOptions {
  /** `grpo({ ... })`, or one defined with `defineAlgorithm`. Default `ppo()`. */
  readonly algorithm?: ConfiguredAlgorithm;
}

/** @throws INVALID_ARGUMENT for the options of an algorithm that are not wrapped in it. */
export function selectAlgorithm(options: AlgorithmOptions): ConfiguredAlgorithm {
  const { algorithm = ppo() } = options;
  const bare = ALGORITHM_NAMES.find((name) => Object.hasOwn(options, name));
  if (bare !== undefined) throw invalidArgument(`\`${bare}\` is not an option; write \`algorithm: ${bare}({ ... })\`.`);
  if (typeof algorithm?.create !== "function")
    throw invalidArgument(
      `\`algorithm\` must be the result of ppo(), grpo(), rloo(), reinforce() or of an algorithm from defineAlgorithm, got ${describeValue(algorithm)}.`,
    );
  return algorithm;
}
