import { BUILT_IN_ENVS } from "../built-in.js";
import { requireEnv, type Env, type EnvOptions, type EnvSpec } from "../env.js";
import { OrderEnforcing, TimeLimit } from "../wrappers/time.js";
import { PassiveEnvChecker } from "../wrappers/passive-env-checker.js";
import { EnvRegistry, type Registration } from "./env-registry.js";

/** Options of `make`; all others are passed to the environment. */
export interface MakeOptions {
  /** Overrides the registered step limit; Infinity for none. */
  readonly maxEpisodeSteps?: number;
  /** Skips the check of the first reset and step. */
  readonly disableEnvChecker?: boolean;
}

/** The registry of `make` and `register`. */
export const registry = new EnvRegistry(BUILT_IN_ENVS);

/** Registers an environment for `make`. */
export function register(registration: Registration): EnvSpec {
  return registry.register(registration);
}

/**
 * Creates a registered environment, wrapped with its step limit, order checks and a check of its
 * first reset and step.
 * @throws ENV_UNKNOWN with the nearest name, ENV_INVALID when the entry point does not return an
 * Env.
 */
export function make<Observation = unknown, Action = unknown>(
  id: string | EnvSpec,
  options: MakeOptions & EnvOptions = {},
): Env<Observation, Action> {
  const registered = typeof id === "string" ? registry.spec(id) : id;
  const { maxEpisodeSteps, disableEnvChecker, ...envOptions } = options;
  const limit = maxEpisodeSteps ?? registered.maxEpisodeSteps;
  const spec: EnvSpec = {
    ...registered,
    options: { ...registered.options, ...envOptions },
    maxEpisodeSteps: limit === Infinity ? undefined : limit,
    disableEnvChecker: disableEnvChecker ?? registered.disableEnvChecker,
  };
  let env = requireEnv(spec.entryPoint(spec.options), `The entry point of ${spec.id}`);
  env.spec = spec;
  if (!spec.disableEnvChecker) env = new PassiveEnvChecker(env);
  if (spec.orderEnforce) env = new OrderEnforcing(env);
  if (spec.maxEpisodeSteps !== undefined) env = new TimeLimit(env, { maxEpisodeSteps: spec.maxEpisodeSteps });
  return env as Env<Observation, Action>;
}
