import { assets } from "#platform";
import { errorMessage, invalidEnv } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { type EnvExport, toEnvFactory } from "../env-export.js";
import { type Env, type EnvOptions, requireEnv } from "../env.js";
import { make, type MakeOptions } from "../registry/make.js";
import type { EnvReference } from "./worker-protocol.js";

/**
 * Creates an environment from an id or a module. @throws ENV_INVALID when the module exports none.
 */
export async function loadEnv(source: EnvReference): Promise<Env> {
  const module = source.module === undefined ? undefined : await importModule(source.module);
  if (source.id !== undefined) return make(source.id, source.options as MakeOptions & EnvOptions);
  const name = source.export ?? "default";
  const entryPoint = module?.[name];
  if (typeof entryPoint !== "function")
    throw invalidEnv(
      `${source.module} exports no function "${name}". Export an Env class or a function that returns an Env.`,
    );
  const subject = `${name} of ${source.module}`;
  const create: (options: EnvOptions) => MaybePromise<Env> = toEnvFactory(entryPoint as EnvExport, subject);
  return requireEnv(await create(source.options ?? {}), subject);
}

async function importModule(module: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await assets.importModule(module);
  } catch (error) {
    const problem = `The module ${module} could not be imported: ${errorMessage(error)}`;
    throw invalidEnv(problem, error);
  }
}
