import type { Env, EnvOptions } from "../env.js";
import { make, type MakeOptions } from "../registry/make.js";
import { registerOpener } from "../registry/open-env.js";
import { OrderEnforcing, TimeLimit } from "../wrappers/time.js";
import { PassiveEnvChecker } from "../wrappers/passive-env-checker.js";
import { HttpEnv } from "./http/http-env.js";
import { loadEnvSpec, MODULE_REFERENCE } from "./load-env-spec.js";
import { OpenEnvClient } from "./open-env/open-env-client.js";
import { PythonEnv } from "./python/python-env.js";

/** Registers an opener for remote environments, which adds the wrappers of `make`. */
function registerRemote(pattern: RegExp, connect: (id: string, options: EnvOptions) => Promise<Env>): void {
  registerOpener({
    pattern,
    isRemote: true,
    async open(id, { maxEpisodeSteps, disableEnvChecker, ...envOptions }: MakeOptions & EnvOptions) {
      let env = await connect(id, envOptions);
      if (disableEnvChecker !== true) env = new PassiveEnvChecker(env);
      env = new OrderEnforcing(env);
      const hasLimit = maxEpisodeSteps !== undefined && maxEpisodeSteps !== Infinity;
      return hasLimit ? new TimeLimit(env, { maxEpisodeSteps }) : env;
    },
  });
}

registerRemote(/^python:/, (id, options) => PythonEnv.open(id.slice("python:".length), options));
registerRemote(/^openenv:/, (id, options) => OpenEnvClient.connect(id.slice("openenv:".length), options));
registerRemote(/^https?:/, (id, options) => HttpEnv.connect(id, options));
registerOpener({
  pattern: MODULE_REFERENCE,
  isRemote: false,
  open: async (reference, options) => make(await loadEnvSpec(reference), options),
});
