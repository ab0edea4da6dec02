import { LlamaGymError } from "../../core/errors.js";
import { BUILT_IN_ENVS } from "../built-in.js";
import { Env, type EnvOptions, type EnvSpec } from "../env.js";
import { OrderEnforcing } from "../wrappers/order-enforcing.js";
import { PassiveEnvChecker } from "../wrappers/passive-env-checker.js";
import { TimeLimit } from "../wrappers/time-limit.js";
import { EnvRegistry, type Registration } from "./env-registry.js";

/** Options of `make` itself; all others go to the environment. */
export interface MakeOptions {
  /** Another step limit than the registered one; Infinity for none. */
  readonly maxEpisodeSteps?: number;
  /** Leaves the first reset and step unchecked. */
  readonly disableEnvChecker?: boolean;
}

/** The environments that `make` and `register` speak of. */
export const registry = new EnvRegistry(BUILT_IN_ENVS);

/** Adds an environment to those that `make` knows. */
export function register(registration: Registration): EnvSpec {
  return registry.register(registration);
}

/**
 * Makes a registered environment, with its step limit, order checks and a check of its first reset and step around it.
 * @throws ENV_UNKNOWN with the nearest name, ENV_INVALID when the entry point gives no environment.
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
  let env = spec.entryPoint(spec.options);
  if (!(env instanceof Env)) {
    throw new LlamaGymError(
      "ENV_INVALID",
      `The entry point of ${spec.id} gave no Env: make it return \`new MyEnv(options)\`, where MyEnv extends Env.`,
    );
  }
  env.spec = spec;
  if (!spec.disableEnvChecker) env = new PassiveEnvChecker(env);
  if (spec.orderEnforce) env = new OrderEnforcing(env);
  if (spec.maxEpisodeSteps !== undefined) env = new TimeLimit(env, { maxEpisodeSteps: spec.maxEpisodeSteps });
  return env as Env<Observation, Action>;
}
