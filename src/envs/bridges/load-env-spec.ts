import { assets } from "#platform";
import { getOrCreatePromise } from "../../core/promise-cache.js";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { errorMessage, invalidEnv } from "../../core/errors.js";
import { type EnvExport, isEnvOrGameClass, toEnvFactory } from "../env-export.js";
import type { EnvSpec } from "../env.js";
import type { Registration } from "../registry/env-registry.js";
import { register, registry } from "../registry/make.js";
import { findSpec, isRemoteEnvId, recordLoadedSpec } from "../registry/open-env.js";

const FILE_REFERENCE = /^(?<module>.+\.[cm]?[jt]s)(?:#(?<exportName>.+))?$/;
const ID_REFERENCE = /^(?<module>.+):(?<id>[^:]+)$/;

interface LoadedModule {
  readonly exports: Readonly<Record<string, unknown>>;
  /** Ids that the module registered when it was imported. */
  readonly ids: readonly string[];
}

const loadedModules = new Map<string, Promise<LoadedModule>>();

/** Returns a reference with the path of its file made absolute. */
export function resolveReference(reference: string): string {
  if (isRemoteEnvId(reference)) return reference;
  const { module } = FILE_REFERENCE.exec(reference)?.groups ?? ID_REFERENCE.exec(reference)?.groups ?? {};
  return module !== undefined && isPath(module) ? resolve(module) + reference.slice(module.length) : reference;
}

/**
 * Imports a module once. Returns the environment ids that it registered. @throws ENV_INVALID when
 * importing it fails.
 */
export async function loadEnvModule(module: string): Promise<readonly string[]> {
  return (await importOnce(module)).ids;
}

/**
 * Loads the environment of a file (`./my-env.js`), one of its exports (`./my-env.js#MyEnv`) or a
 * registered id of a module (`module:Id`). An export is a class of environments or games, a
 * function that returns an Env, or a `Registration`. Without an export's name, the id that the file
 * registers, its default export, or its only environment is loaded.
 * @throws ENV_INVALID when the module cannot be imported or has no such environment.
 */
export async function loadEnvSpec(reference: string): Promise<EnvSpec> {
  const known = findSpec(reference);
  if (known !== undefined) return known;
  const spec = await loadSpec(reference);
  recordLoadedSpec(reference, spec);
  return spec;
}

async function loadSpec(reference: string): Promise<EnvSpec> {
  const { module, exportName } = FILE_REFERENCE.exec(reference)?.groups ?? {};
  if (module === undefined) {
    const { module: registering, id } = ID_REFERENCE.exec(reference)!.groups!;
    await loadEnvModule(registering);
    return registry.spec(id);
  }
  const { exports, ids } = await importOnce(module);
  if (exportName === undefined && ids.length === 1) return registry.spec(ids[0]);
  const name = exportName ?? findEnvExport(module, exports, ids);
  return toSpec(reference, name, exports[name]);
}

function findEnvExport(module: string, exports: LoadedModule["exports"], ids: readonly string[]): string {
  if (exports.default !== undefined) return "default";
  const names = Object.keys(exports).filter((name) => isEnvOrGameClass(exports[name]) || isRegistration(exports[name]));
  if (names.length === 1) return names[0];
  const candidates = [...ids.map((id) => `${module}:${id}`), ...names.map((name) => `${module}#${name}`)];
  throw invalidEnv(
    candidates.length === 0
      ? `${module} exports no environment. Export a class that extends llamagym's Env or Game, or call register() in it. If it does, it ` +
          "imports another copy of llamagym than this program."
      : `${module} has several environments. Choose one: ${candidates.join(", ")}.`,
  );
}

function toSpec(reference: string, name: string, value: unknown): EnvSpec {
  if (isRegistration(value)) return registry.has(value.id) ? registry.spec(value.id) : register(value);
  if (typeof value !== "function")
    throw invalidEnv(
      `${reference}: the export "${name}" is not an environment. Export an Env class, a function that returns an Env, or a registration.`,
    );
  return {
    id: reference,
    entryPoint: toEnvFactory(value as EnvExport, `The export "${name}" of ${reference}`),
    options: {},
    nondeterministic: false,
    orderEnforce: true,
    disableEnvChecker: false,
  };
}

const isRegistration = (value: unknown): value is Registration =>
  typeof value === "object" && value !== null && "id" in value && "entryPoint" in value;

const isPath = (module: string) =>
  /^(?:\.{0,2}[\\/]|[A-Za-z]:[\\/])|\.[cm]?[jt]s$/.test(module) && !module.startsWith("file:");

function importOnce(module: string): Promise<LoadedModule> {
  const url = locate(module);
  return getOrCreatePromise(loadedModules, url, () => importModule(module, url));
}

async function importModule(module: string, url: string): Promise<LoadedModule> {
  const before = new Set(registry.all());
  try {
    const exports = await assets.importModule(url);
    const ids = registry.all().flatMap((spec) => (before.has(spec) ? [] : [spec.id]));
    return { exports, ids };
  } catch (error) {
    const message = errorMessage(error).replace(/ imported from .*|\s+Require stack:[^]*/, "");
    throw invalidEnv(`${module} failed to import: ${message}`, error);
  }
}

/** Returns the URL of a file, or of a package as resolved from the working directory. */
function locate(module: string): string {
  if (isPath(module)) return pathToFileURL(resolve(module)).href;
  try {
    return pathToFileURL(createRequire(join(process.cwd(), "index.js")).resolve(module)).href;
  } catch {
    return module;
  }
}
