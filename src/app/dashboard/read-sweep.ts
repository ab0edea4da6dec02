import { z } from "zod";
import { errorMessage } from "../../core/errors.js";
import type { SweepRow } from "./api.js";
import { isRunId, type RunsFolder } from "./run-files.js";

const settingSchema = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const configSchema = z.object({ search: z.record(z.string(), z.unknown()) }).partial();
const resultsSchema = z.object({
  env: z.string().nullish(),
  method: z.string().nullish(),
  metric: z.string().nullish(),
  goal: z.enum(["maximize", "minimize"]).nullish(),
  finished: z.boolean().nullish(),
  trials: z.array(
    z.object({
      trial: z.number(),
      settings: z.record(z.string(), settingSchema),
      rung: z.number(),
      value: z.number().nullish(),
      standardError: z.number().nullish(),
      failure: z.string().nullish(),
      runs: z.array(z.object({ folder: z.string() })),
    }),
  ),
});

/** Reads a sweep's settings and results; what cannot be read is a problem of the row. */
export async function readSweep(runs: RunsFolder, id: string): Promise<SweepRow> {
  const row: SweepRow = {
    id,
    name: id.split("/").at(-1)!,
    problem: null,
    env: null,
    method: null,
    metric: null,
    goal: "maximize",
    isFinished: false,
    settings: [],
    trials: [],
  };
  try {
    const config = configSchema.parse((await runs.readJson(id, "sweep.json")) ?? {});
    const saved = await runs.readJson(id, "results.json");
    if (saved === undefined) return { ...row, settings: Object.keys(config.search ?? {}) };
    const { env, method, metric, goal, finished, trials } = resultsSchema.parse(saved);
    return {
      ...row,
      env: env ?? null,
      method: method ?? null,
      metric: metric ?? null,
      goal: goal ?? "maximize",
      isFinished: finished ?? false,
      settings: Object.keys(config.search ?? trials.at(0)?.settings ?? {}),
      trials: trials.map(({ value = null, standardError = null, failure = null, ...trial }) => ({
        ...trial,
        value,
        standardError,
        failure,
        runs: trial.runs.map(({ folder }) => `${id}/${folder}`).filter(isRunId),
      })),
    };
  } catch (error) {
    const isOtherForm = error instanceof z.ZodError;
    return { ...row, problem: `${isOtherForm ? "The sweep has another form: " : ""}${errorMessage(error)}` };
  }
}
