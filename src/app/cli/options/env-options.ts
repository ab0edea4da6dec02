import { resolve } from "node:path";
import { defineSettings, list, text, type GivenSettings } from "../../../core/settings.js";
import { registry, type EnvOptions } from "../../../envs/index.js";
import { loadEnvModule, resolveReference } from "../../../envs/bridges/index.js";
import { envSettings, RunEnv } from "../../runs/run-env.js";
import { quoteArg } from "../command-line.js";
import { toOptionName } from "./option-names.js";
import { UsageError } from "./usage-error.js";

/** Options that name an environment and its own options. */
export const envSourceOptions = defineSettings(
  {
    option: list({
      short: "o",
      common: true,
      valueName: "name=value",
      description: "Option of the environment, such as isSlippery=false. May be repeated.",
    }),
    envModule: text({
      valueName: "file",
      description: "JavaScript or TypeScript file or package to import first, which registers ENV.",
    }),
    tasks: text({
      valueName: "file",
      description: 'Tasks of an mcp: environment: a JSONL file with one {"prompt": "..."} per line.',
    }),
    reward: text({
      valueName: "file#export",
      description:
        "Reward function of an mcp: environment, exported by a JavaScript or TypeScript file; result for that of the server; none for 0.",
    }),
  },
  { group: "Environment" },
);

/** Options of all commands that create an environment. */
export const envOptions = { ...envSourceOptions, ...envSettings };

type EnvArgs = Partial<GivenSettings<typeof envOptions>>;

/** Returns the environment that a command's arguments name. */
export async function resolveRunEnv(name: string, args: EnvArgs): Promise<RunEnv> {
  return new RunEnv({ ...args, env: await resolveEnvId(name, args), envOptions: readEnvOptions(args) });
}

/** Formats an environment as the arguments that name it, for a command line to copy. */
export function formatEnvArgs({ id, options, settings }: RunEnv): string {
  const optionArgs = Object.entries(options).map(
    ([name, value]) => `-o ${quoteArg(`${name}=${JSON.stringify(value)}`)}`,
  );
  const settingArgs = Object.entries(settings).map(([name, value]) => `--${toOptionName(name)} ${value}`);
  return [quoteArg(id), ...optionArgs, ...settingArgs].join(" ");
}

/**
 * Resolves a name to what `openEnv` takes: an id in any spelling (text-world is TextWorld-v0), the
 * absolute path of a file, or MODULE:ID for an id that --env-module registers. Other names are
 * returned unchanged.
 */
export async function resolveEnvId(name: string, { envModule }: Pick<EnvArgs, "envModule">): Promise<string> {
  if (envModule === undefined) return findId(name) ?? resolveReference(name);
  const module = resolveReference(envModule);
  const ids = await loadEnvModule(module);
  const id = findId(name) ?? name;
  return ids.includes(id) ? `${module}:${id}` : id;
}

function findId(name: string): string | undefined {
  if (registry.has(name)) return name;
  const normalized = normalizeName(name);
  const ids = registry.all().map(({ id }) => id);
  const exactMatch = ids.find((id) => normalizeName(id) === normalized);
  // The latest of several versions is registered last.
  return exactMatch ?? ids.findLast((id) => normalizeName(id.replace(/-v\d+$/, "")) === normalized);
}

const normalizeName = (name: string) => name.toLowerCase().replace(/[-_ ]/g, "");

/**
 * Returns the environment's options that a command's arguments set; files with absolute paths,
 * which a resumed run finds.
 */
export function readEnvOptions({ option, tasks, reward }: Pick<EnvArgs, "option" | "tasks" | "reward">): EnvOptions {
  return {
    ...parseEnvOptions(option),
    ...(tasks === undefined ? {} : { tasks: resolve(tasks) }),
    ...(reward === undefined ? {} : { reward: resolveReference(reward) }),
  };
}

/** Parses the values of --option into the environment's options. */
function parseEnvOptions(options: readonly string[] = []): Record<string, unknown> {
  return Object.fromEntries(options.map(parseEnvOption));
}

/** Parses "size=8" as ["size", 8]; a value that is no JSON is text. */
function parseEnvOption(option: string): [string, unknown] {
  const end = option.indexOf("=");
  if (end <= 0) throw new UsageError(`--option must be name=value, got "${option}".`);
  const value = option.slice(end + 1);
  try {
    return [option.slice(0, end), JSON.parse(value) as unknown];
  } catch {
    return [option.slice(0, end), value];
  }
}
