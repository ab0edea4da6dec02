import { ALGORITHM_NAMES, algorithms, type AlgorithmName, type AlgorithmOptions } from "../algorithms/table.js";
import { invalid, type Setting, type SettingTable, type Settings } from "../algorithms/shared/settings.js";

type Tables = { [Name in AlgorithmName]: Settings<(typeof algorithms)[Name]["settings"]> };
type Keys<T> = T extends unknown ? keyof T : never;
type ValueOf<T, Name extends PropertyKey> = T extends unknown ? (Name extends keyof T ? T[Name] : never) : never;

/** The settings of all algorithms; a run has those of its own. */
export type AlgorithmSettings = {
  readonly [Name in Keys<Tables[AlgorithmName]>]?: ValueOf<Tables[AlgorithmName], Name>;
};

/** The settings of all algorithms in one table, for options of a command: what any of them takes can be given. */
export const allAlgorithmSettings: SettingTable = Object.fromEntries(
  [...new Set(ALGORITHM_NAMES.flatMap((algorithm) => Object.keys(algorithms[algorithm].settings)))].map((name) => [
    name,
    merge(name),
  ]),
);

/** The algorithm's settings, all decided. Throws INVALID_ARGUMENT for what cannot be, and for settings of other algorithms. */
export function resolveAlgorithmSettings(algorithm: AlgorithmName, given: AlgorithmSettings): AlgorithmSettings {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || settingOf(algorithm, name) !== undefined) continue;
    const owners = ALGORITHM_NAMES.filter((other) => settingOf(other, name) !== undefined);
    throw invalid(`${name} is a setting of ${owners.join(", ")}, and the algorithm is ${algorithm}. Leave it out.`);
  }
  return algorithms[algorithm].resolve(given as never);
}

/** A run's settings as its agent takes them: under the algorithm's name. */
export function agentAlgorithmOptions(
  settings: AlgorithmSettings & { readonly algorithm: AlgorithmName },
): AlgorithmOptions {
  const { algorithm } = settings;
  const names = Object.keys(algorithms[algorithm].settings) as (keyof AlgorithmSettings)[];
  return { [algorithm]: Object.fromEntries(names.map((name) => [name, settings[name]])) };
}

function settingOf(algorithm: AlgorithmName, name: string): Setting | undefined {
  const table: SettingTable = algorithms[algorithm].settings;
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** A setting that takes what the algorithms' own of that name take; it says whose it is and, where they differ, their defaults. */
function merge(name: string): Setting {
  const owners = ALGORITHM_NAMES.filter((algorithm) => settingOf(algorithm, name) !== undefined);
  const all = owners.map((algorithm) => settingOf(algorithm, name)!);
  const [first] = all;
  const isSame = all.every((setting) => setting.default === first.default);
  const whose = owners.length === ALGORITHM_NAMES.length ? "" : `${owners.join(", ")}: `;
  const usual = owners.map((algorithm, i) => `${algorithm} ${String(all[i].default ?? "off")}`);
  const description = `${whose}${first.description}${isSame ? "" : `; by default ${usual.join(", ")}`}`;
  const shared = isSame ? { description } : { description, default: undefined };
  if ("choices" in first) {
    const choices = [...new Set(all.flatMap((setting) => ("choices" in setting ? setting.choices : [])))];
    return { ...first, ...shared, choices };
  }
  if ("text" in first || typeof first.default === "boolean") return { ...first, description };
  return { ...first, ...shared, ...widest(all as readonly NumberSetting[]) };
}

type NumberSetting = Extract<Setting, { readonly min?: number }>;

/** Bounds that let through what any of the settings lets through. */
function widest(settings: readonly NumberSetting[]): Pick<NumberSetting, "min" | "above" | "max"> {
  const all = (name: "min" | "above" | "max") => settings.flatMap((setting) => setting[name] ?? []);
  const bound = (values: readonly number[], pick: (...values: number[]) => number) =>
    values.length === settings.length ? pick(...values) : undefined;
  return {
    min: bound(all("min"), Math.min),
    above: bound(all("above"), Math.min),
    max: bound(all("max"), Math.max),
  };
}
