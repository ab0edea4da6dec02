import { invalidArgument } from "../../core/errors.js";
import type { ConfiguredAlgorithm } from "./define-algorithm.js";
import { grpo } from "./grpo/grpo.js";
import type { GrpoOptions } from "./grpo/settings.js";
import { onlineDpo } from "./online-dpo/online-dpo.js";
import { ppo } from "./ppo/ppo.js";
import type { PpoOptions } from "./ppo/settings.js";
import { reinforce } from "./reinforce/reinforce.js";
import type { ReinforceOptions } from "./reinforce/settings.js";
import { rloo } from "./rloo/rloo.js";
import type { RlooOptions } from "./rloo/settings.js";

/** The built-in algorithms. */
export const algorithms = { ppo, grpo, rloo, reinforce, "online-dpo": onlineDpo } as const;

export type AlgorithmName = keyof typeof algorithms;
export const ALGORITHM_NAMES = Object.keys(algorithms) as readonly AlgorithmName[];

/**
 * The algorithm of an agent: a configured one, or the options of a built-in one by its name.
 * Default PPO.
 */
export interface AlgorithmOptions {
  /** `ppo({ ... })`, or one defined with `defineAlgorithm`. */
  readonly algorithm?: ConfiguredAlgorithm;
  readonly ppo?: PpoOptions;
  readonly grpo?: GrpoOptions;
  readonly rloo?: RlooOptions;
  readonly reinforce?: ReinforceOptions;
}

/** @throws INVALID_ARGUMENT for options of several algorithms, or out of range. */
export function selectAlgorithm(options: AlgorithmOptions): ConfiguredAlgorithm {
  const given = (["algorithm", "ppo", "grpo", "rloo", "reinforce"] as const).filter(
    (name) => options[name] !== undefined,
  );
  if (given.length > 1)
    throw invalidArgument(`An agent has one algorithm, but options for ${given.join(" and ")} were given; keep one.`);
  const { algorithm, ppo: ppoOptions, grpo: grpoOptions, rloo: rlooOptions, reinforce: reinforceOptions } = options;
  if (algorithm !== undefined) return algorithm;
  if (grpoOptions !== undefined) return grpo(grpoOptions);
  if (rlooOptions !== undefined) return rloo(rlooOptions);
  if (reinforceOptions !== undefined) return reinforce(reinforceOptions);
  return ppo(ppoOptions);
}
