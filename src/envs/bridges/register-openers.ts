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

registerOpener({
  pattern: /^mcp:/,
  isRemote: true,
  // The step limit is the environment's own: a judge scores the step that reaches it.
  async open(id, { disableEnvChecker, ...options }: MakeOptions & EnvOptions) {
    const { McpEnv } = await import("./mcp/mcp-env.js");
    const env = (await McpEnv.open(id.slice("mcp:".length), options)) as Env;
    return new OrderEnforcing(disableEnvChecker === true ? env : new PassiveEnvChecker(env));
  },
});
registerRemote(/^python:/, (id, options) => PythonEnv.open(id.slice("python:".length), options));
registerRemote(/^openenv:/, (id, options) => OpenEnvClient.connect(id.slice("openenv:".length), options));
registerRemote(/^https?:/, (id, options) => HttpEnv.connect(id, options));
registerOpener({
  pattern: MODULE_REFERENCE,
  isRemote: false,
  open: async (reference, options) => make(await loadEnvSpec(reference), options),
});
