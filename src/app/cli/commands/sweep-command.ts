import { resolve } from "node:path";
import { readJson } from "../../../models/files/index.js";
import { trainSettings } from "../../runs/run-settings.js";
import { normalizeKeys } from "../../sweeps/search-space.js";
import { sweepSettings, type SweepOptions } from "../../sweeps/sweep-settings.js";
import { readSweepOptions } from "../../sweeps/sweep-folder.js";
import { runSweep } from "../../sweeps/run-sweep.js";
import { resolveEnvId, envOptions, toFileName, parseEnvOptions } from "../options/env-options.js";
import { InterruptHandler, SIGINT_EXIT_CODE } from "../interrupt-handler.js";
import { print } from "../display/output.js";
import { UsageError, type OptionTable, type OptionValues } from "../options/parse-args.js";
import { buildPositionalCommand } from "../options/build-positional-command.js";
import { explicitSettings, toOptionName, optionsFromSettings } from "../options/setting-options.js";
import { SweepDisplay, formatSweepReport } from "../display/sweep-display.js";
import { trainOptionGroups } from "../options/train-option-groups.js";

/** What is fixed in all trials: a run's settings but those that the sweep decides. */
const { seed: _seed, evalEpisodes: _evalEpisodes, ...fixedSettings } = trainSettings;

const commandOptions = {
  config: {
    type: "text",
    alias: "c",
    hint: "file",
    description: "a JSON file of the sweep: env, train, search and the settings below; options here go before",
  },
  output: {
    type: "text",
    hint: "folder",
    description: "the folder that keeps the sweep, runs/sweep-ENV by default; where the same sweep is, it goes on",
  },
  search: {
    type: "text",
    alias: "s",
    hint: "name=values",
    repeated: true,
    description:
      "a setting and what to try of it: entropyCoef=0,0.01,0.1 or learningRate=1e-4..1e-2:log, for a grid with a number of points, 1e-4..1e-2:log:5; may be given several times",
  },
  seeds: {
    type: "text",
    hint: "number or list",
    description: "each trial is trained with so many seeds (3), or with these (1,2,5); 1 by default",
  },
  option: envOptions.option,
  "env-module": envOptions["env-module"],
} as const satisfies OptionTable;

const options = { ...optionsFromSettings(fixedSettings), ...commandOptions, ...optionsFromSettings(sweepSettings) };

type Args = OptionValues<typeof commandOptions> & Readonly<Record<string, unknown>>;

export const sweepCommand = buildPositionalCommand(
  "sweep",
  "Try settings: train with each combination and several seeds, and compare what comes of them",
  [{ name: "ENV", description: "an environment, such as blackjack", required: false }],
  options,
  async (args, [name]) => sweep(args as unknown as Args, name),
  {
    Sweep: ["config", "output", "search", "seeds", ...Object.keys(sweepSettings).map(toOptionName)],
    ...fixedOptionGroups(),
  },
);

/** The headings of `train` with what is fixed in all trials. */
function fixedOptionGroups() {
  const names = new Set([...Object.keys(fixedSettings).map(toOptionName), "option"]);
  const groups = Object.entries(trainOptionGroups()).map(([title, group]) => [
    title,
    group.filter((name) => names.has(name)),
  ]);
  return Object.fromEntries(groups) as ReturnType<typeof trainOptionGroups>;
}

async function sweep(args: Args, name: string | undefined): Promise<number> {
  const sweepOptions = await explicitOptions(args, name);
  const folder = args.output ?? `runs/sweep-${toFileName(sweepOptions.env)}`;
  const display = new SweepDisplay(folder);
  const interrupt = new InterruptHandler(
    "Finishing this update, then saving. Once more quits at once; the same command then goes on from the last checkpoint.",
  );
  try {
    const result = await runSweep(sweepOptions, folder, { ...display.callbacks, signal: interrupt.signal });
    display.end();
    if (result.isInterrupted) {
      print(`Stopped and saved. Go on by the same command, or by: llamagym sweep --output ${folder}`);
      return SIGINT_EXIT_CODE;
    }
    print(formatSweepReport(result, folder));
    return result.best === undefined ? 1 : 0;
  } finally {
    display.end();
    interrupt.release();
  }
}

async function explicitOptions(args: Args, name: string | undefined): Promise<SweepOptions> {
  const { version: _, ...file } = normalizeKeys("the sweep", await loadBaseConfig(args, name));
  const { env: fileEnv, envOptions: fileEnvOptions, train, search, ...rest } = file;
  const env = name ?? fileEnv;
  if (typeof env !== "string") {
    throw new UsageError(
      "ENV is missing: name an environment, such as blackjack, a --config FILE with one, or the --output FOLDER of a sweep to go on with.",
    );
  }
  return {
    ...rest,
    ...explicitSettings(sweepSettings, args),
    ...(args.seeds === undefined ? {} : { seeds: parseSeeds(args.seeds) }),
    env: await resolveEnvId(env, args),
    envOptions: { ...(fileEnvOptions as object | undefined), ...parseEnvOptions(args.option) },
    train: { ...normalizeKeysIfObject("train", train), ...explicitSettings(fixedSettings, args) },
    search: { ...normalizeKeysIfObject("search", search), ...parseSearch(args.search) },
  };
}

/** What the options here are added to: a file, or the sweep of the folder where nothing says which. */
async function loadBaseConfig(args: Args, name: string | undefined): Promise<Readonly<Record<string, unknown>>> {
  if (args.config !== undefined) return readJson(args.config);
  const hasExplicitSource = name !== undefined || args.search !== undefined || args.output === undefined;
  const saved = hasExplicitSource ? undefined : await readSweepOptions(resolve(args.output));
  return (saved ?? {}) as Readonly<Record<string, unknown>>;
}

/** What is no object is left to the sweep to refuse. */
function normalizeKeysIfObject(source: string, value: unknown): object | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? normalizeKeys(source, value as Readonly<Record<string, unknown>>) : (value as undefined);
}

function parseSearch(search: readonly string[] = []): Record<string, string> {
  const pairs = search.map((text) => {
    const end = text.indexOf("=");
    if (end <= 0) throw new UsageError(`--search takes name=values, such as entropyCoef=0,0.01,0.1, not "${text}".`);
    return [text.slice(0, end).replace(/^--/, ""), text.slice(end + 1)] as const;
  });
  const names = pairs.map(([name]) => name);
  const duplicate = names.find((name, i) => names.indexOf(name) < i);
  if (duplicate !== undefined) throw new UsageError(`--search has ${duplicate} twice; put all its values into one.`);
  return normalizeKeys("--search", Object.fromEntries(pairs));
}

/** "3" is three seeds, "1,2,5" are these. */
function parseSeeds(text: string): number | number[] {
  const numbers = text.split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
  if (numbers.some((number) => !Number.isInteger(number)))
    throw new UsageError(`--seeds must be a number of seeds, or a list such as 1,2,5, not ${text}.`);
  return numbers.length === 1 ? numbers[0] : numbers;
}
