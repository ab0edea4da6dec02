import {
  ALGORITHM_NAMES,
  algorithms,
  type AlgorithmName,
  type AlgorithmOptions,
} from "../../rl/algorithms/algorithms.js";
import { invalidArgument } from "../../core/errors.js";
import { findAlgorithm } from "./load-algorithm.js";
import type { Setting, SettingTable, Settings } from "../../core/settings.js";

type AlgorithmSettingTables = { [Name in AlgorithmName]: Settings<(typeof algorithms)[Name]["settings"]> };
type KeysOfUnion<T> = T extends unknown ? keyof T : never;
type ValueOf<T, Name extends PropertyKey> = T extends unknown ? (Name extends keyof T ? T[Name] : never) : never;

/** The settings of all algorithms; a run has those of its own. */
export type AlgorithmSettings = {
  readonly [Name in KeysOfUnion<AlgorithmSettingTables[AlgorithmName]>]?: ValueOf<
    AlgorithmSettingTables[AlgorithmName],
    Name
  >;
};

/** The settings of all algorithms in one table, for options of a command: what any of them takes can be given. */
export const allAlgorithmSettings: SettingTable = Object.fromEntries(
  [...new Set(ALGORITHM_NAMES.flatMap((algorithm) => Object.keys(algorithms[algorithm].settings)))].map((name) => [
    name,
    mergeSettings(name),
  ]),
);

/** Resolves the settings of a run's algorithm. @throws INVALID_ARGUMENT for invalid settings and those of other algorithms. */
export function resolveAlgorithmSettings(algorithm: string, given: AlgorithmSettings): AlgorithmSettings {
  const { resolve } = findAlgorithm(algorithm);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || findSetting(algorithm, name) !== undefined) continue;
    const owners = ALGORITHM_NAMES.filter((other) => findSetting(other, name) !== undefined);
    throw invalidArgument(
      `${name} is a setting of ${owners.join(", ")}, but the algorithm is ${algorithm}. Remove it.`,
    );
  }
  return resolve(given as never) as AlgorithmSettings;
}

/** Returns the algorithm of a run with its settings. */
export function configureAlgorithm(
  settings: AlgorithmSettings & { readonly algorithm: string },
): Required<Pick<AlgorithmOptions, "algorithm">> {
  const algorithm = findAlgorithm(settings.algorithm);
  const names = Object.keys(algorithm.settings) as (keyof AlgorithmSettings)[];
  return { algorithm: algorithm(Object.fromEntries(names.map((name) => [name, settings[name]])) as never) };
}

function findSetting(algorithm: string, name: string): Setting | undefined {
  const table: SettingTable = findAlgorithm(algorithm).settings;
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** Merges the algorithms' settings of a name: accepts what any of them accepts, has a default if they agree on it. */
function mergeSettings(name: string): Setting {
  const owners = ALGORITHM_NAMES.filter((algorithm) => findSetting(algorithm, name) !== undefined);
  const owned = owners.map((algorithm) => findSetting(algorithm, name)!);
  const [first] = owned;
  const isSame = owned.every((setting) => setting.default === first.default);
  const ownerPrefix = owners.length === ALGORITHM_NAMES.length ? "" : `${owners.join(", ")}: `;
  const description = `${ownerPrefix}${first.description}`;
  const overrides = isSame ? { description } : { description, default: undefined };
  if ("choices" in first) {
    const choices = [...new Set(owned.flatMap((setting) => ("choices" in setting ? setting.choices : [])))];
    return { ...first, ...overrides, choices };
  }
  if ("text" in first || typeof first.default === "boolean") return { ...first, description };
  return { ...first, ...overrides, ...mergeBounds(owned as readonly NumberSetting[]) };
}

type NumberSetting = Extract<Setting, { readonly min?: number }>;

/** Bounds that let through what any of the settings lets through. */
function mergeBounds(settings: readonly NumberSetting[]): Pick<NumberSetting, "min" | "above" | "max"> {
  const boundsNamed = (name: "min" | "above" | "max") => settings.flatMap((setting) => setting[name] ?? []);
  const mergeBound = (values: readonly number[], select: (...values: number[]) => number) =>
    values.length === settings.length ? select(...values) : undefined;
  return {
    min: mergeBound(boundsNamed("min"), Math.min),
    above: mergeBound(boundsNamed("above"), Math.min),
    max: mergeBound(boundsNamed("max"), Math.max),
  };
}
