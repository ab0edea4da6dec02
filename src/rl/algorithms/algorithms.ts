import { grpoSettings, resolveGrpoConfig, type GrpoOptions } from "./grpo/settings.js";
import { ppoSettings, resolvePpoConfig, type PpoOptions } from "./ppo/settings.js";
import { reinforceSettings, resolveReinforceConfig, type ReinforceOptions } from "./reinforce/settings.js";
import { resolveRlooConfig, rlooSettings, type RlooOptions } from "./rloo/settings.js";
import { invalidArgument } from "../../core/settings.js";

/** The algorithms by which an agent can learn: their settings, how they are decided, and whether they train a value head. */
export const algorithms = {
  ppo: { settings: ppoSettings, resolve: resolvePpoConfig, hasCritic: true },
  grpo: { settings: grpoSettings, resolve: resolveGrpoConfig, hasCritic: false },
  rloo: { settings: rlooSettings, resolve: resolveRlooConfig, hasCritic: false },
  reinforce: { settings: reinforceSettings, resolve: resolveReinforceConfig, hasCritic: false },
} as const;

export type AlgorithmName = keyof typeof algorithms;
export const ALGORITHM_NAMES = Object.keys(algorithms) as readonly AlgorithmName[];

/** An algorithm's options under its name; PPO with its defaults where there are none. */
export interface AlgorithmOptions {
  readonly ppo?: PpoOptions;
  readonly grpo?: GrpoOptions;
  readonly rloo?: RlooOptions;
  readonly reinforce?: ReinforceOptions;
}

/** Throws INVALID_ARGUMENT for options of several algorithms. */
export function checkOneAlgorithm(options: AlgorithmOptions): void {
  const given = ALGORITHM_NAMES.filter((name) => options[name] !== undefined);
  if (given.length <= 1) return;
  throw invalidArgument(
    `An agent learns by one algorithm, but there are options for ${given.join(" and ")}; leave out all but one.`,
  );
}
