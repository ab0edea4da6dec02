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

/** The functions that configure the built-in algorithms, by their names in code. */
const FUNCTION_NAMES = ALGORITHM_NAMES.map((name) => name.replace(/-./, ([, letter]) => letter.toUpperCase()));

/** @throws INVALID_ARGUMENT for the options of an algorithm that are not wrapped in it. */
export function selectAlgorithm(options: AlgorithmOptions): ConfiguredAlgorithm {
  const { algorithm = ppo() } = options;
  const bare = FUNCTION_NAMES.findIndex((name, i) =>
    [name, ALGORITHM_NAMES[i]].some((key) => Object.hasOwn(options, key)),
  );
  if (bare >= 0)
    throw invalidArgument(
      `\`${ALGORITHM_NAMES[bare]}\` is not an option; write \`algorithm: ${FUNCTION_NAMES[bare]}({ ... })\`.`,
    );
  if (typeof algorithm?.create !== "function")
    throw invalidArgument(
      `\`algorithm\` must be the result of ${FUNCTION_NAMES.map((name) => `${name}()`).join(", ")} or of an algorithm from defineAlgorithm, got ${describeValue(algorithm)}.`,
    );
  return algorithm;
}
