// What opens an environment is loaded with the first one of its kind: most programs need none of
// it.
import type { Env, EnvOptions } from "../env.js";
import type { GameOptions } from "../games/as-env.js";
import { make, type MakeOptions } from "../registry/make.js";
import { registerOpener } from "../registry/open-env.js";
import { OrderEnforcing, TimeLimit } from "../wrappers/time.js";
import { PassiveEnvChecker } from "../wrappers/passive-env-checker.js";

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
registerRemote(/^python:/, async (id, options) => {
  const { PythonEnv } = await import("./python/python-env.js");
  return PythonEnv.open(id.slice("python:".length), options);
});
registerRemote(/^pettingzoo:/, async (id, { opponent, seat, ...options }: EnvOptions & GameOptions) => {
  const { openPettingZoo } = await import("./python/petting-zoo-game.js");
  return openPettingZoo(id.slice("pettingzoo:".length), options, { opponent, seat });
});
registerRemote(/^openenv:/, async (id, options: EnvOptions & GameOptions) => {
  const { OpenEnvClient } = await import("./open-env/open-env-client.js");
  return OpenEnvClient.open(id.slice("openenv:".length), options);
});
registerRemote(/^https?:/, async (id, options) => {
  const { HttpEnv } = await import("./http/http-env.js");
  return HttpEnv.connect(id, options);
});
registerOpener({
  // A file, `FILE#export`, or Gymnasium's `module:Id`.
  pattern: /\.[cm]?[jt]s(?:#.+)?$|^.+:[^:/\\]/,
  isRemote: false,
  async open(reference, options) {
    const { loadEnvSpec } = await import("./load-env-spec.js");
    return make(await loadEnvSpec(reference), options);
  },
});
