import { existsSync } from "node:fs";
import { findSpec } from "../../envs/index.js";
import { EMBEDDED_MODEL } from "../../models/index.js";

/** A setting of an environment that names, or may name, a file, module or command. */
export interface NamedFile {
  readonly setting: "env" | "envOptions";
  /** The environment, or the name of its option. */
  readonly name: string;
}

/**
 * Returns the first setting that would open a file, run code or start a command: settings of others
 * may only name registered environments, with options that contain no path.
 */
export function findNamedFile(env: string, envOptions: Readonly<Record<string, unknown>> = {}): NamedFile | undefined {
  if (findSpec(env) === undefined) return { setting: "env", name: env };
  const option = Object.entries(envOptions).find(([, value]) => mayNameFile(value));
  return option === undefined ? undefined : { setting: "envOptions", name: option[0] };
}

/** Whether a model is a path, rather than the embedded model or one of the hub. */
export function isModelPath(model: string): boolean {
  const isHubId = /^[\w-][\w.-]*\/[\w-][\w.-]*(:[\w.-]+)?$/.test(model) && !existsSync(model);
  return model !== EMBEDDED_MODEL && !isHubId;
}

/** Whether a value contains a path or a name with an extension, such as game.z8. */
function mayNameFile(value: unknown): boolean {
  if (typeof value === "string") return /[/\\]|\.[a-z]\w*$/i.test(value);
  return typeof value === "object" && value !== null && Object.values(value).some(mayNameFile);
}
