import { makeAsync, type Env, registry } from "../../../envs/index.js";
import { UsageError, type OptionTable } from "./parse-args.js";

/** How an environment is made, for every command that makes one. */
export const envOptions = {
  option: {
    type: "text",
    alias: "o",
    hint: "name=value",
    repeated: true,
    description: "an option of the environment, such as isSlippery=false; may be given several times",
  },
  "max-steps": { type: "number", integer: true, min: 1, description: "another step limit than the registered one" },
} as const satisfies OptionTable;

/**
 * The environment that a name means: an id, an id in whatever spelling (text-world is TextWorld-v0), or what `makeAsync`
 * opens (python:CarRacing-v3).
 */
export async function openEnv(
  name: string,
  { option = [], "max-steps": maxEpisodeSteps }: { readonly option?: readonly string[]; readonly "max-steps"?: number },
): Promise<Env> {
  return makeAsync(resolveEnvId(name), {
    ...parseEnvOptions(option),
    ...(maxEpisodeSteps === undefined ? {} : { maxEpisodeSteps }),
  });
}

/** The id that a name means; the name itself where none does. */
export function resolveEnvId(name: string): string {
  if (registry.has(name)) return name;
  const normalized = normalizeName(name);
  const ids = registry.all().map(({ id }) => id);
  const exactMatch = ids.find((id) => normalizeName(id) === normalized);
  // Of several versions the latest is registered last.
  return exactMatch ?? ids.findLast((id) => normalizeName(id.replace(/-v\d+$/, "")) === normalized) ?? name;
}

/** An environment's name as a part of a file's: "CartPole-v1" is "cartpole-v1". */
export function toFileName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, "-");
}

const normalizeName = (name: string) => name.toLowerCase().replace(/[-_ ]/g, "");

/** The environment's own options, by name. */
export function parseEnvOptions(options: readonly string[] = []): Record<string, unknown> {
  return Object.fromEntries(options.map(parseEnvOption));
}

/** "size=8" is ["size", 8]; what is no JSON is text. */
function parseEnvOption(option: string): [string, unknown] {
  const end = option.indexOf("=");
  if (end <= 0) throw new UsageError(`--option takes name=value, not "${option}".`);
  const value = option.slice(end + 1);
  try {
    return [option.slice(0, end), JSON.parse(value) as unknown];
  } catch {
    return [option.slice(0, end), value];
  }
}
