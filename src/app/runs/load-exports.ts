import { basename, extname } from "node:path";
import { invalidArgument } from "../../core/errors.js";
import type { RewardFunction } from "../../rl/train/index.js";
import type { Tool } from "../../rl/tools/index.js";
import { importModule } from "./import-module.js";

/** What a module exports for a run. */
interface ExportKind {
  /** Names it in messages. */
  readonly noun: string;
  readonly test: (value: unknown) => boolean;
  /** Describes what a module must export. */
  readonly form: string;
}

const REWARD_FUNCTION: ExportKind = {
  noun: "reward function",
  test: (value) => typeof value === "function",
  form: "a function ({ prompts, completions, ...columns }) that returns a number per completion",
};

const TOOL: ExportKind = {
  noun: "tool",
  test: (value) => typeof (value as Partial<Tool> | null | undefined)?.execute === "function",
  form: "an object { name, description, parameters, execute }",
};

/** Splits FILE.js#name into the path of a module and the name of its export, if there is one. */
export function parseExportReference(reference: string): { readonly path: string; readonly name: string | undefined } {
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
  const loaded = await loadExports(references, REWARD_FUNCTION);
  return loaded.map(({ value, path }) => nameAfterModule(value as RewardFunction, path));
}

/** Loads tools from modules, as `loadRewardFunctions` does functions. @throws likewise */
export async function loadTools(references: readonly string[]): Promise<readonly Tool[]> {
  return (await loadExports(references, TOOL)).map(({ value }) => value as Tool);
}

interface LoadedExport {
  readonly value: unknown;
  readonly path: string;
}

async function loadExports(references: readonly string[], kind: ExportKind): Promise<readonly LoadedExport[]> {
  const loaded: LoadedExport[] = [];
  for (const reference of references) {
    const { path, name } = parseExportReference(reference);
    const exports = await importModule(path, `The module of ${kind.noun}s`);
    loaded.push(...selectExports(exports, kind, { path, name }).map((value) => ({ value, path })));
  }
  return loaded;
}

function selectExports(
  exports: Readonly<Record<string, unknown>>,
  { noun, test, form }: ExportKind,
  { path, name }: ReturnType<typeof parseExportReference>,
): readonly unknown[] {
  const names = Object.keys(exports).filter((key) => test(exports[key]));
  if (name !== undefined) {
    if (test(exports[name])) return [exports[name]];
    const plural = `${noun.split(" ").at(-1)}s`;
    const advice = names.length === 0 ? `It exports no ${plural}.` : `Its ${plural} are ${names.join(", ")}.`;
    throw invalidArgument(`${path} exports no ${noun} "${name}". ${advice}`);
  }
  const { default: main } = exports;
  const values: readonly unknown[] =
    main === undefined ? names.map((key) => exports[key]) : Array.isArray(main) ? main : [main];
  if (values.length > 0 && values.every(test)) return values;
  throw invalidArgument(
    `${path} must export ${noun}s: ${form}, as its default export or by name, or a list of them as its default export.`,
  );
}

/** Names an anonymous function after its module, for the metrics. */
function nameAfterModule(call: RewardFunction, path: string): RewardFunction {
  if (call.name !== "" && call.name !== "default") return call;
  const value = basename(path, extname(path));
  const named: RewardFunction = Object.assign(async (...args: Parameters<RewardFunction>) => call(...args), call);
  return Object.defineProperty(named, "name", { value });
}
