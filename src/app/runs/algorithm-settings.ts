import { ALGORITHM_NAMES, algorithms, type AlgorithmName, type AlgorithmOptions } from "../../rl/algorithms/index.js";
import { invalidArgument } from "../../core/errors.js";
import { findAlgorithm } from "./load-algorithm.js";
import type { Setting, SettingTable, Settings } from "../../core/settings.js";

type AlgorithmSettingTables = { [Name in AlgorithmName]: Settings<(typeof algorithms)[Name]["settings"]> };
type KeysOfUnion<T> = T extends unknown ? keyof T : never;
type ValueOf<T, Name extends PropertyKey> = T extends unknown ? (Name extends keyof T ? T[Name] : never) : never;

/** The settings of all algorithms; a run has those of its algorithm. */
export type AlgorithmSettings = {
  readonly [Name in KeysOfUnion<AlgorithmSettingTables[AlgorithmName]>]?: ValueOf<
    AlgorithmSettingTables[AlgorithmName],
    Name
  >;
};

/**
 * The settings of all algorithms in one table, for options of a command: what any of them takes can
 * be given.
 */
export const allAlgorithmSettings: SettingTable = Object.fromEntries(
  [...new Set(ALGORITHM_NAMES.flatMap((algorithm) => Object.keys(algorithms[algorithm].settings)))].map((name) => [
    name,
    mergeSettings(name),
  ]),
);

/**
 * Resolves the settings of a run's algorithm. @throws INVALID_ARGUMENT for invalid settings and
 * those of other algorithms.
 */
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

/**
 * Merges the algorithms' settings of a name: accepts what any of them accepts, has a default if
 * they agree on it.
 */
function mergeSettings(name: string): Setting {
  const owners = ALGORITHM_NAMES.filter((algorithm) => findSetting(algorithm, name) !== undefined);
  const owned = owners.map((algorithm) => findSetting(algorithm, name)!);
  const [first] = owned;
  const isShared = owners.length === ALGORITHM_NAMES.length;
  const group = isShared ? "Algorithm" : owners.join() === "ppo" ? "PPO only" : "Some algorithms";
  const shared = { ...first, group, scope: "algorithm", description: mergeDescriptions(owners, owned, isShared) };
  const isSameDefault = owned.every((setting) => setting.default === first.default);
  const merged = isSameDefault || first.type === "boolean" ? shared : { ...shared, default: undefined };
  if (merged.type === "choice")
    return { ...merged, choices: [...new Set((owned as ChoiceSetting[]).flatMap(({ choices }) => choices))] };
  if (merged.type !== "number") return merged as Setting;
  const mergeBound = (bound: "min" | "above" | "max", select: (...values: number[]) => number) => {
    const values = (owned as NumberSetting[]).flatMap((setting) => setting[bound] ?? []);
    return values.length === owned.length ? select(...values) : undefined;
  };
  return {
    ...merged,
    min: mergeBound("min", Math.min),
    above: mergeBound("above", Math.min),
    max: mergeBound("max", Math.max),
  };
}

/** Names the algorithms of each description, unless all have the same one. */
function mergeDescriptions(owners: readonly string[], owned: readonly Setting[], isShared: boolean): string {
  const distinct = [...new Set(owned.map(({ description }) => description))];
  if (distinct.length === 1 && isShared) return distinct[0];
  return distinct
    .map((text) => `${owners.filter((_, i) => owned[i].description === text).join(", ")}: ${text}`)
    .join(" ");
}

type NumberSetting = Extract<Setting, { readonly type: "number" }>;
type ChoiceSetting = Extract<Setting, { readonly type: "choice" }>;
