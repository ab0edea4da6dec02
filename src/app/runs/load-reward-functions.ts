import { basename, extname } from "node:path";
import { invalidArgument } from "../../core/errors.js";
import type { RewardFunction } from "../../rl/train/index.js";
import { importModule } from "./import-module.js";

/** Splits FILE.js#name into the path of a module and the name of its export, if there is one. */
export function parseRewardReference(reference: string): { readonly path: string; readonly name: string | undefined } {
  const [, path = reference, name] = /^(.*?)(?:#([^#/\\]*))?$/su.exec(reference) ?? [];
  return { path, name };
}

/**
 * Loads reward functions from modules, in order: of FILE.js its default export, a function or a
 * list of them, or else all functions that it exports, by name; of FILE.js#name that export.
 * @throws FILE_NOT_FOUND, FILE_READ_FAILED, and INVALID_ARGUMENT for a module without reward
 * functions.
 */
export async function loadRewardFunctions(references: readonly string[]): Promise<readonly RewardFunction[]> {
  const loaded: RewardFunction[] = [];
  for (const reference of references) loaded.push(...(await loadModule(reference)));
  return loaded;
}

async function loadModule(reference: string): Promise<readonly RewardFunction[]> {
  const { path, name } = parseRewardReference(reference);
  const exports = await importModule(path, "The module of reward functions");
  const names = Object.keys(exports).filter((key) => typeof exports[key] === "function");
  if (name !== undefined) {
    if (typeof exports[name] === "function") return [exports[name] as RewardFunction];
    const advice = names.length === 0 ? "It exports no function." : `Its functions are ${names.join(", ")}.`;
    throw invalidArgument(`${path} exports no reward function "${name}". ${advice}`);
  }
  const { default: main } = exports;
  const functions: readonly unknown[] =
    main === undefined ? names.map((key) => exports[key]) : Array.isArray(main) ? main : [main];
  if (functions.length > 0 && functions.every((value) => typeof value === "function"))
    return (functions as readonly RewardFunction[]).map((call) => nameAfterModule(call, path));
  throw invalidArgument(
    `${path} must export reward functions: a function ({ prompts, completions, ...columns }) that returns a number per completion, ` +
      "as its default export or by name, or a list of them as its default export.",
  );
}

/** Names an anonymous function after its module, for the metrics. */
function nameAfterModule(call: RewardFunction, path: string): RewardFunction {
  if (call.name !== "" && call.name !== "default") return call;
  const value = basename(path, extname(path));
  const named: RewardFunction = Object.assign(async (...args: Parameters<RewardFunction>) => call(...args), call);
  return Object.defineProperty(named, "name", { value });
}
