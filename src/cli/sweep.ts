import { resolve } from "node:path";
import { readJson } from "../files/index.js";
import { trainSettings } from "../training/settings.js";
import { byOwnNames } from "../training/sweep/search-space.js";
import { sweepSettings, type SweepOptions } from "../training/sweep/settings.js";
import { readSweepOptions } from "../training/sweep/sweep-folder.js";
import { runSweep } from "../training/sweep/sweep.js";
import { envId, envOptions, fileNamePart, readEnvOptions } from "./env-options.js";
import { Interrupt, INTERRUPTED } from "./interrupt.js";
import { print } from "./output.js";
import { UsageError, type OptionTable, type OptionValues } from "./options.js";
import { positionalCommand } from "./positional-command.js";
import { givenSettings, optionName, settingOptions } from "./setting-options.js";
import { SweepDisplay, sweepReport } from "./sweep-display.js";
import { trainGroups } from "./train-groups.js";

/** What is fixed in all trials: a run's settings but those that the sweep decides. */
const { seed: _seed, evalEpisodes: _evalEpisodes, ...fixedSettings } = trainSettings;

const ownOptions = {
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
} as const satisfies OptionTable;

const options = { ...settingOptions(fixedSettings), ...ownOptions, ...settingOptions(sweepSettings) };

type Values = OptionValues<typeof ownOptions> & Readonly<Record<string, unknown>>;

export const sweepCommand = positionalCommand(
  "sweep",
  "Try settings: train with each combination and several seeds, and compare what comes of them",
  [{ name: "ENV", description: "an environment, such as blackjack", required: false }],
  options,
  async (values, [name]) => sweep(values as unknown as Values, name),
  {
    Sweep: ["config", "output", "search", "seeds", ...Object.keys(sweepSettings).map(optionName)],
    ...fixedGroups(),
  },
);

/** The headings of `train` with what is fixed in all trials. */
function fixedGroups() {
  const names = new Set([...Object.keys(fixedSettings).map(optionName), "option"]);
  const groups = Object.entries(trainGroups()).map(([title, group]) => [
    title,
    group.filter((name) => names.has(name)),
  ]);
  return Object.fromEntries(groups) as ReturnType<typeof trainGroups>;
}

async function sweep(values: Values, name: string | undefined): Promise<number> {
  const given = await givenOptions(values, name);
  const folder = values.output ?? `runs/sweep-${fileNamePart(given.env)}`;
  const display = new SweepDisplay(folder);
  const interrupt = new Interrupt(
    "Finishing this update, then saving. Once more quits at once; the same command then goes on from the last checkpoint.",
  );
  try {
    const result = await runSweep(given, folder, { ...display.watch, signal: interrupt.signal });
    display.end();
    if (result.isInterrupted) {
      print(`Stopped and saved. Go on by the same command, or by: llamagym sweep --output ${folder}`);
      return INTERRUPTED;
    }
    print(sweepReport(result, folder));
    return result.best === undefined ? 1 : 0;
  } finally {
    display.end();
    interrupt.release();
  }
}

async function givenOptions(values: Values, name: string | undefined): Promise<SweepOptions> {
  const { version: _, ...file } = byOwnNames("the sweep", await begunWith(values, name));
  const { env: fileEnv, envOptions: fileEnvOptions, train, search, ...others } = file;
  const env = name ?? fileEnv;
  if (typeof env !== "string") {
    throw new UsageError(
      "ENV is missing: name an environment, such as blackjack, a --config FILE with one, or the --output FOLDER of a sweep to go on with.",
    );
  }
  return {
    ...others,
    ...givenSettings(sweepSettings, values),
    ...(values.seeds === undefined ? {} : { seeds: readSeeds(values.seeds) }),
    env: envId(env),
    envOptions: { ...(fileEnvOptions as object | undefined), ...readEnvOptions(values.option) },
    train: { ...named("train", train), ...givenSettings(fixedSettings, values) },
    search: { ...named("search", search), ...readSearch(values.search) },
  };
}

/** What the options here are added to: a file, or the sweep of the folder where nothing says which. */
async function begunWith(values: Values, name: string | undefined): Promise<Readonly<Record<string, unknown>>> {
  if (values.config !== undefined) return readJson(values.config);
  const isNamed = name !== undefined || values.search !== undefined || values.output === undefined;
  const saved = isNamed ? undefined : await readSweepOptions(resolve(values.output));
  return (saved ?? {}) as Readonly<Record<string, unknown>>;
}

/** What is no object is left to the sweep to refuse. */
function named(where: string, given: unknown): object | undefined {
  const isObject = typeof given === "object" && given !== null && !Array.isArray(given);
  return isObject ? byOwnNames(where, given as Readonly<Record<string, unknown>>) : (given as undefined);
}

function readSearch(search: readonly string[] = []): Record<string, string> {
  const pairs = search.map((text) => {
    const end = text.indexOf("=");
    if (end <= 0) throw new UsageError(`--search takes name=values, such as entropyCoef=0,0.01,0.1, not "${text}".`);
    return [text.slice(0, end).replace(/^--/, ""), text.slice(end + 1)] as const;
  });
  const names = pairs.map(([name]) => name);
  const again = names.find((name, i) => names.indexOf(name) < i);
  if (again !== undefined) throw new UsageError(`--search has ${again} twice; put all its values into one.`);
  return byOwnNames("--search", Object.fromEntries(pairs));
}

/** "3" is three seeds, "1,2,5" are these. */
function readSeeds(text: string): number | number[] {
  const numbers = text.split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
  if (numbers.some((number) => !Number.isInteger(number)))
    throw new UsageError(`--seeds must be a number of seeds, or a list such as 1,2,5, not ${text}.`);
  return numbers.length === 1 ? numbers[0] : numbers;
}
