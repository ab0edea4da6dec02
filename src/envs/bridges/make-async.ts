import type { Env, EnvOptions } from "../env.js";
import { make, type MakeOptions } from "../registry/make.js";
import { OrderEnforcing } from "../wrappers/order-enforcing.js";
import { PassiveEnvChecker } from "../wrappers/passive-env-checker.js";
import { TimeLimit } from "../wrappers/time-limit.js";
import { HttpEnv } from "./http/http-env.js";
import { OpenEnvClient } from "./open-env/open-env-client.js";
import { PythonEnv } from "./python/python-env.js";

type EnvOpener = (address: string, options: EnvOptions) => Promise<Env>;

/** What stands before an environment that lives elsewhere, and what opens it. */
const ENV_OPENERS: Readonly<Record<string, EnvOpener>> = {
  "python:": (id, options) => PythonEnv.open(id, options),
  "openenv:": (url, options) => OpenEnvClient.connect(url, options),
  "http:": (url, options) => HttpEnv.connect(`http:${url}`, options),
  "https:": (url, options) => HttpEnv.connect(`https:${url}`, options),
};

const findPrefix = (id: string) => Object.keys(ENV_OPENERS).find((name) => id.startsWith(name));

/** Whether an id is that of an environment in another process or on another machine. */
export function isRemoteEnvId(id: string): boolean {
  return findPrefix(id) !== undefined;
}

/**
 * `make` for environments anywhere: a registered id; "python:CarRacing-v3" or "python:module:Id-v0" in a Python process;
 * "openenv:http://host:8000" on an OpenEnv server; "http://host:port" on a server of one's own. Options besides those of
 * `make` are PythonEnvOptions, OpenEnvOptions or HttpEnvOptions. Close it when it is done with.
 */
export async function makeAsync<Observation = unknown, Action = unknown>(
  id: string,
  options: MakeOptions & EnvOptions = {},
): Promise<Env<Observation, Action>> {
  const prefix = findPrefix(id);
  if (prefix === undefined) return make<Observation, Action>(id, options);
  const { maxEpisodeSteps, disableEnvChecker, ...envOptions } = options;
  let env = await ENV_OPENERS[prefix](id.slice(prefix.length), envOptions);
  if (disableEnvChecker !== true) env = new PassiveEnvChecker(env);
  env = new OrderEnforcing(env);
  if (maxEpisodeSteps !== undefined && maxEpisodeSteps !== Infinity) env = new TimeLimit(env, { maxEpisodeSteps });
  return env as Env<Observation, Action>;
}
