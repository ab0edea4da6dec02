import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { system } from "#platform";
import { z } from "zod";
import { errorMessage } from "../../core/errors.js";
import { parseRecord, ROLLOUTS_FILE, METRICS_FILE } from "../../rl/tracking/index.js";
import { JOB_LOG_FILE } from "../distributed/job-log-line.js";
import { LOG_FILE, type RunLogLine } from "../runs/run-log-line.js";
import type { RunRow, RunState } from "./api.js";
import { NO_NOTES, NOTES_FILE, readNotes } from "./notes.js";
import { parseLogLine } from "./read-log.js";
import { readLastLines, type RunsFolder } from "./run-files.js";

/** Runs that are listed; more than a page can show. */
const MAX_RUNS = 5_000;
/** Levels of folders between the folder of runs and a run. */
const MAX_DEPTH = 3;
/** Subfolders of a run, which are not searched. */
const SKIPPED = new Set(["checkpoints", "adapter", "tensorboard", "wandb", "node_modules", "control", ".git"]);
/**
 * A run of another machine, or without a log, counts as running for this long after its last line.
 */
const SILENT_MS = 120_000;
/** Version of config.json that is read. */
const CONFIG_VERSION = 2;

const configSchema = z
  .object({ version: z.unknown(), env: z.string(), model: z.string(), algorithm: z.string(), seed: z.number() })
  .partial()
  .catchall(z.unknown());

interface FoundRun {
  readonly id: string;
  readonly sweep: string | null;
  /** Names of the files in its folder; links are none. */
  readonly files: ReadonlySet<string>;
}

/** Runs and sweeps below the root, sorted by id. */
export interface FolderIndex {
  readonly runs: readonly FoundRun[];
  readonly sweeps: readonly string[];
}

const listEntries = (folder: string) => readdir(folder, { withFileTypes: true }).catch(() => []);
const fileNames = (entries: readonly Dirent[]): ReadonlySet<string> =>
  new Set(entries.filter((entry) => entry.isFile()).map(({ name }) => name));

/** Searches the root for runs and sweeps; links are not followed. */
async function findRuns({ root, only }: RunsFolder): Promise<FolderIndex> {
  const runs: FoundRun[] = [];
  const sweeps: string[] = [];
  async function visit(id: string, depth: number, sweep: string | null): Promise<void> {
    const entries = await listEntries(join(root, id));
    const files = fileNames(entries);
    if (files.has("sweep.json")) sweeps.push((sweep = id));
    else if ((files.has("config.json") || files.has(METRICS_FILE)) && runs.length < MAX_RUNS)
      return void runs.push({ id, sweep, files });
    if (depth > MAX_DEPTH) return;
    const folders = entries.filter((entry) => entry.isDirectory() && !SKIPPED.has(entry.name));
    for (const { name } of folders) await visit(id === "" ? name : `${id}/${name}`, depth + 1, sweep);
  }
  await visit(only ?? "", only === undefined ? 0 : 1, null);
  return { runs: runs.sort((a, b) => (a.id < b.id ? -1 : 1)), sweeps: sweeps.sort() };
}

interface RowList {
  readonly rows: readonly RunRow[];
  readonly index: FolderIndex;
}

interface CachedRow {
  readonly stamp: string;
  readonly row: RunRow;
}

/** Rows of runs, read again when one of their files changed. */
export class RunRows {
  private readonly cache = new Map<string, CachedRow>();
  private listing: Promise<RowList> | undefined;

  constructor(private readonly runs: RunsFolder) {}

  /**
   * Lists all runs. Calls while the folder is read get the same answer: a page that opens asks
   * three times at once.
   */
  async list(): Promise<RowList> {
    this.listing ??= this.readAll().finally(() => (this.listing = undefined));
    return this.listing;
  }

  private async readAll(): Promise<RowList> {
    const index = await findRuns(this.runs);
    const rows: RunRow[] = [];
    // 32 folders at a time: one at a time waits for the disk, all at once use too many descriptors.
    for (let start = 0; start < index.runs.length; start += 32) {
      const part = index.runs.slice(start, start + 32);
      rows.push(...(await Promise.all(part.map(async (run) => this.readFound(run)))));
    }
    for (const id of this.cache.keys()) if (!index.runs.some((run) => run.id === id)) this.cache.delete(id);
    return { rows, index };
  }

  async read(id: string): Promise<RunRow> {
    const files = fileNames(await listEntries(await this.runs.folder(id)));
    return this.readFound({ id, sweep: this.cache.get(id)?.row.sweep ?? null, files });
  }

  private async readFound(run: FoundRun): Promise<RunRow> {
    const { id, sweep } = run;
    const stamp = await fileStamp(join(this.runs.root, id), run.files);
    const cached = this.cache.get(id);
    // The process of a running run can end without writing a line.
    if (cached?.stamp === stamp && cached.row.state !== "running") return cached.row;
    const row = await this.readRow(run).catch((error: unknown) => brokenRow(id, sweep, errorMessage(error)));
    this.cache.set(id, { stamp, row });
    return row;
  }

  private async readRow({ id, sweep, files }: FoundRun): Promise<RunRow> {
    const problems: string[] = [];
    const note = (error: unknown) => void problems.push(errorMessage(error));
    const lastLines = async (name: string) => (files.has(name) ? readLastLines(this.runs, id, name) : undefined);
    const saved = files.has("config.json") ? await this.runs.readJson(id, "config.json").catch(note) : undefined;
    const parsed = configSchema.safeParse(saved ?? {});
    const config = parsed.data ?? {};
    if (saved === undefined && problems.length === 0) problems.push("There is no config.json.");
    if (parsed.error !== undefined) problems.push(`config.json: ${errorMessage(parsed.error)}`);
    else if (saved !== undefined && config.version !== CONFIG_VERSION)
      problems.push(
        `config.json has version ${JSON.stringify(config.version) ?? "none"}, not ${CONFIG_VERSION}: what is readable is shown.`,
      );
    const metrics = await lastLines(METRICS_FILE);
    const log = await lastLines(LOG_FILE);
    const records = (metrics?.lines ?? []).map(parseRecord);
    const last = Object.assign({}, ...records) as Readonly<Record<string, number>>;
    const lines = (log?.lines ?? []).flatMap((line) => parseLogLine(line) ?? []);
    const changedMs = Math.max(metrics?.changedMs ?? 0, log?.changedMs ?? 0) || null;
    const limits = config as Readonly<Record<string, unknown>>;
    const { tags, note: text, problem } = files.has(NOTES_FILE) ? await readNotes(this.runs, id) : NO_NOTES;
    if (problem !== undefined) problems.push(problem);
    return {
      id,
      name: id,
      kind: parsed.data === undefined || saved === undefined ? "unknown" : findKind(config),
      env: config.env ?? null,
      model: config.model ?? null,
      algorithm: config.algorithm ?? (config.env === undefined ? null : "ppo"),
      seed: config.seed ?? null,
      state: runState(lines, changedMs, saved !== undefined && saved !== null),
      problem: problems.length === 0 ? null : problems.join(" "),
      result: finite(
        last["rollout/ep_rew_mean"] ?? last.reward ?? last["sft/loss"] ?? last["dpo/loss"] ?? last["kto/loss"],
      ),
      progress: progressOf(limits, last),
      updates: finite(last.step) ?? 0,
      turns: finite(last.num_turns),
      episodes: finite(last.num_episodes),
      seconds: finite(lines.findLast(({ seconds }) => seconds !== undefined)?.seconds),
      commit: lines.find(({ commit }) => commit !== undefined)?.commit ?? null,
      startedMs: lines.find(({ kind }) => kind === "start")?.time ?? null,
      changedMs,
      tags,
      note: text,
      sweep,
      hasRollouts: files.has(ROLLOUTS_FILE),
      hasJobs: files.has(JOB_LOG_FILE),
      isSelfPlay: limits.selfPlay === true,
    };
  }
}

function findKind({ env, algorithm }: z.infer<typeof configSchema>): RunRow["kind"] {
  if (env !== undefined) return "train";
  if (algorithm === "dpo" || algorithm === "kto") return "preferences";
  return algorithm === undefined ? "sft" : "prompts";
}

function brokenRow(id: string, sweep: string | null, problem: string): RunRow {
  const nothing = { env: null, model: null, algorithm: null, seed: null, result: null, progress: null, turns: null };
  const unknown = { episodes: null, seconds: null, commit: null, startedMs: null, changedMs: null };
  return {
    id,
    name: id,
    kind: "unknown",
    ...nothing,
    ...unknown,
    state: "unknown",
    problem,
    updates: 0,
    tags: [],
    note: "",
    sweep,
    hasRollouts: false,
    hasJobs: false,
    isSelfPlay: false,
  };
}

/** Changes when one of the files that a row is read from does. */
async function fileStamp(folder: string, files: ReadonlySet<string>): Promise<string> {
  const names = [METRICS_FILE, LOG_FILE, "config.json", NOTES_FILE].filter((name) => files.has(name));
  const stamps = await Promise.all(
    names.map(async (name) =>
      stat(join(folder, name)).then(
        ({ size, mtimeMs, ino }) => `${name}/${size}/${mtimeMs}/${ino}`,
        () => "",
      ),
    ),
  );
  return [...stamps, files.has(ROLLOUTS_FILE), files.has(JOB_LOG_FILE)].join();
}

/** Tells from its log whether a run's process is running and how it ended. */
function runState(lines: readonly RunLogLine[], changedMs: number | null, hasConfig: boolean): RunState {
  const isRecent = changedMs !== null && Date.now() - changedMs < SILENT_MS;
  const last = lines.findLast(({ kind }) => kind === "start" || kind === "end");
  if (last === undefined) return isRecent ? "running" : hasConfig ? "stopped" : "unknown";
  if (last.kind === "end")
    return last.outcome === "finished" ? "finished" : last.outcome === "failed" ? "failed" : "stopped";
  const isHere = last.host === hostname() && last.pid !== undefined;
  return (isHere ? system.isProcessRunning(last.pid) : isRecent) ? "running" : "stopped";
}

/** Completed fraction by the run's limits; null where there are none. */
function progressOf(config: Readonly<Record<string, unknown>>, last: Readonly<Record<string, number>>): number | null {
  const fractions = (
    [
      ["episodes", "num_episodes"],
      ["turns", "num_turns"],
      ...(config.maxSteps === undefined
        ? ([
            ["numTrainEpochs", "epoch"],
            ["numTrainEpochs", "sft/epoch"],
            ["numTrainEpochs", "dpo/epoch"],
            ["numTrainEpochs", "kto/epoch"],
          ] as const)
        : ([["maxSteps", "step"]] as const)),
    ] as const
  ).flatMap(([limit, count]) => {
    const [total, done] = [config[limit], last[count]];
    return typeof total === "number" && total > 0 && Number.isFinite(done) ? [Math.min(1, done / total)] : [];
  });
  return fractions.length === 0 ? null : Math.max(...fractions);
}

function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}
