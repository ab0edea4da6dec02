import { errorMessage, invalidEnv } from "../../core/errors.js";
import { Env, type EnvOptions, requireEnv } from "../env.js";
import { make, type MakeOptions } from "../registry/make.js";
import type { EnvSource } from "./worker-protocol.js";

type EnvExport = ((options: EnvOptions) => unknown) | (new (options: EnvOptions) => unknown);

/**
 * Creates an environment from an id or a module. @throws ENV_INVALID when the module exports none.
 */
export async function loadEnv(source: EnvSource): Promise<Env> {
  const module = source.module === undefined ? undefined : await importModule(source.module);
  if (source.id !== undefined) return make(source.id, source.options as MakeOptions & EnvOptions);
  const name = source.export ?? "default";
  const entryPoint = module?.[name];
  if (typeof entryPoint !== "function")
    throw invalidEnv(
      `${source.module} exports no function "${name}". Export an Env class or a function that returns an Env.`,
    );
  const env = await constructEnv(entryPoint as EnvExport, source.options ?? {});
  return requireEnv(env as Env, `${name} of ${source.module}`);
}

async function importModule(module: string): Promise<Record<string, unknown>> {
  try {
    return (await import(module)) as Record<string, unknown>;
  } catch (error) {
    const problem = `The module ${module} could not be imported: ${errorMessage(error)}`;
    throw invalidEnv(problem, error);
  }
}

async function constructEnv(entryPoint: EnvExport, options: EnvOptions): Promise<unknown> {
  const isClass = entryPoint.prototype instanceof Env;
  if (isClass) return new (entryPoint as new (options: EnvOptions) => unknown)(options);
  return await (entryPoint as (options: EnvOptions) => unknown)(options);
}
