import { resolve } from "node:path";
import { invalidArgument } from "../../core/errors.js";
import { ALGORITHM_NAMES, algorithms, type AlgorithmName, type Algorithm } from "../../rl/algorithms/index.js";
import { importModule } from "./import-module.js";

/** Algorithms loaded from modules, by absolute path. */
const loaded = new Map<string, Algorithm>();

export function isBuiltInAlgorithm(name: string): name is AlgorithmName {
  return Object.hasOwn(algorithms, name);
}

/** Whether a name is meant as the path of a module. */
export function isAlgorithmPath(name: string): boolean {
  return /[/\\]|\.[cm]?[jt]s$/.test(name);
}

/**
 * Returns a built-in algorithm, or one loaded before. @throws INVALID_ARGUMENT for any other name.
 */
export function findAlgorithm(name: string): Algorithm {
  const algorithm: Algorithm | undefined = isBuiltInAlgorithm(name) ? algorithms[name] : loaded.get(name);
  if (algorithm !== undefined) return algorithm;
  const names = ALGORITHM_NAMES.map((builtIn) => JSON.stringify(builtIn)).join(", ");
  throw invalidArgument(
    `A run's algorithm must be one of ${names} or the path of a module, got ${JSON.stringify(name)}.`,
  );
}

/**
 * Loads the algorithm that a module exports as default, or as its only algorithm; returns the name
 * under which `findAlgorithm` finds it: the absolute path of the module. Names of built-in
 * algorithms are returned unchanged.
 *
 * @throws FILE_NOT_FOUND for a missing module, FILE_READ_FAILED for one that cannot be imported,
 * INVALID_ARGUMENT for one without an algorithm.
 */
export async function loadAlgorithm(name: string): Promise<string> {
  if (isBuiltInAlgorithm(name) || !isAlgorithmPath(name)) return name;
  const path = resolve(name);
  if (loaded.has(path)) return path;
  const exports = await importModule(path, "The algorithm");
  const candidates = isAlgorithm(exports.default) ? [exports.default] : Object.values(exports).filter(isAlgorithm);
  if (candidates.length !== 1)
    throw invalidArgument(
      `${path} must export one algorithm as default, but exports ${candidates.length}. Create it with defineAlgorithm.`,
    );
  loaded.set(path, candidates[0]);
  return path;
}

function isAlgorithm(value: unknown): value is Algorithm {
  return typeof value === "function" && "algorithmName" in value && "settings" in value;
}
