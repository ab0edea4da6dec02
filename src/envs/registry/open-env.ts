import { invalidArgument } from "../../core/errors.js";
import { describeValue } from "../../core/format.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { Env, type EnvOptions, type EnvSpec } from "../env.js";
import { type EnvExport, toEnvFactory } from "../env-export.js";
import { make, registry, type MakeOptions } from "./make.js";

/** Opens the environments whose id matches a pattern. */
export interface EnvOpener {
  readonly pattern: RegExp;
  /** Whether the environment runs in another process or on another machine. */
  readonly isRemote: boolean;
  /** Opens an environment with its wrappers. */
  open(id: string, options: MakeOptions & EnvOptions): Promise<Env>;
}

const openers: EnvOpener[] = [];
/** Specs of environments loaded from modules, by the reference that named them. */
const loadedSpecs = new Map<string, EnvSpec>();

const findOpener = (id: string) => (registry.has(id) ? undefined : openers.find(({ pattern }) => pattern.test(id)));

/** Adds an opener to those of `openEnv`; earlier ones take precedence. */
export function registerOpener(opener: EnvOpener): void {
  openers.push(opener);
}

/** Whether an id names an environment in another process or on another machine. */
export function isRemoteEnvId(id: string): boolean {
  return findOpener(id)?.isRemote ?? false;
}

/**
 * `make` for environments from anywhere: a registered id; a file (`./my-env.js`,
 * `./my-env.js#MyEnv`) or `module:Id`; "python:CarRacing-v3" or "python:module:Id-v0" in a Python
 * process; "openenv:http://host:8000" on an OpenEnv server, which may be a game; "mcp:COMMAND" or
 * "mcp:http://host:port/mcp" for the tools of an MCP server; "http://host:port" on a custom server.
 * Options other than those of `make` go to the environment or to PythonEnvOptions, OpenEnvOptions,
 * McpEnvOptions or HttpEnvOptions. Close the environment when done.
 */
export async function openEnv<Observation = unknown, Action = unknown>(
  id: string,
  options: MakeOptions & EnvOptions = {},
): Promise<Env<Observation, Action>> {
  const opener = findOpener(id);
  if (opener === undefined) return make<Observation, Action>(id, options);
  return (await opener.open(id, options)) as Env<Observation, Action>;
}

/** Where a trainer gets its environments from: an id, a class, or a function that makes one. */
export type EnvSource = string | EnvExport | (() => MaybePromise<Env>);

/**
 * Returns what makes an environment of a source, which `subject` names in messages.
 * @throws INVALID_ARGUMENT for any other value, such as an environment, of which several are needed.
 */
export function toMakeEnv(source: EnvSource, subject: string): () => MaybePromise<Env> {
  if (typeof source === "string") return async () => openEnv(source);
  if (typeof source === "function") {
    const create: (options: EnvOptions) => MaybePromise<Env> = toEnvFactory(source as EnvExport, subject);
    return () => create({});
  }
  const given = (source as unknown) instanceof Env ? "one environment: pass () => new MyEnv()" : describeValue(source);
  throw invalidArgument(
    `${subject} must be an id, a class that extends Env, or a function that makes an environment, got ${given}.`,
  );
}

/** Records the spec of an environment loaded from a module, for `findSpec`. */
export function recordLoadedSpec(reference: string, spec: EnvSpec): void {
  loadedSpecs.set(reference, spec);
}

/** Returns the spec of a registered id or of a reference loaded before; undefined for other ids. */
export function findSpec(id: string): EnvSpec | undefined {
  return loadedSpecs.get(id) ?? (registry.has(id) ? registry.spec(id) : undefined);
}
