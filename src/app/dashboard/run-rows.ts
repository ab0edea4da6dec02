import { readdir, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { system } from "#platform";
import { z } from "zod";
import { errorMessage } from "../../core/errors.js";
import { parseRecord } from "../../rl/tracking/jsonl/read-metrics.js";
import { JOB_LOG_FILE } from "../distributed/job-log.js";
import { LOG_FILE, type RunLogLine } from "../runs/run-log.js";
import { ROLLOUTS_FILE } from "../../rl/tracking/rollouts/chunk.js";
import type { RunRow, RunState } from "./api.js";
import { readNotes } from "./notes.js";
import { parseLogLine } from "./read-log.js";
import { readLastLines, type RunsFolder } from "./run-files.js";
import { METRICS_FILE } from "../../rl/tracking/jsonl/read-metrics.js";

/** Runs that are listed; more than a page can show. */
const MAX_RUNS = 5_000;
/** Levels of folders between the folder of runs and a run. */
const MAX_DEPTH = 3;
/** Subfolders of a run, which are not searched. */
const SKIPPED = new Set(["checkpoints", "adapter", "tensorboard", "wandb", "node_modules", "control", ".git"]);
/** A run of another machine, or without a log, counts as running for this long after its last line. */
const SILENT_MS = 120_000;
/** Version of config.json that is read. */
const CONFIG_VERSION = 2;

const configSchema = z
  .object({ version: z.unknown(), env: z.string(), model: z.string(), algorithm: z.string(), seed: z.number() })
  .partial()
  .catchall(z.unknown());

/** Ids of the runs and sweeps below the root, sorted. */
export interface FolderIndex {
  readonly runs: readonly { readonly id: string; readonly sweep: string | null }[];
  readonly sweeps: readonly string[];
}

/** Searches the root for runs and sweeps; links are not followed. */
async function findRuns({ root, only }: RunsFolder): Promise<FolderIndex> {
  const runs: { id: string; sweep: string | null }[] = [];
  const sweeps: string[] = [];
  async function visit(id: string, depth: number, sweep: string | null): Promise<void> {
    const entries = await readdir(join(root, id), { withFileTypes: true }).catch(() => []);
    const has = (name: string) => entries.some((entry) => entry.name === name && entry.isFile());
    if (has("sweep.json")) sweeps.push((sweep = id));
    else if ((has("config.json") || has(METRICS_FILE)) && runs.length < MAX_RUNS) return void runs.push({ id, sweep });
    if (depth > MAX_DEPTH) return;
    const folders = entries.filter((entry) => entry.isDirectory() && !SKIPPED.has(entry.name));
    for (const { name } of folders) await visit(id === "" ? name : `${id}/${name}`, depth + 1, sweep);
  }
  await visit(only ?? "", only === undefined ? 0 : 1, null);
  return { runs: runs.sort((a, b) => (a.id < b.id ? -1 : 1)), sweeps: sweeps.sort() };
}

interface CachedRow {
  readonly stamp: string;
  readonly row: RunRow;
}

/** Rows of runs, read again when one of their files changed. */
export class RunRows {
  private readonly cache = new Map<string, CachedRow>();

  constructor(private readonly runs: RunsFolder) {}

  async list(): Promise<{ readonly rows: readonly RunRow[]; readonly index: FolderIndex }> {
    const index = await findRuns(this.runs);
    const rows: RunRow[] = [];
    // 32 folders at a time: one at a time waits for the disk, all at once use too many descriptors.
    for (let start = 0; start < index.runs.length; start += 32) {
      const part = index.runs.slice(start, start + 32);
      rows.push(...(await Promise.all(part.map(async ({ id, sweep }) => this.read(id, sweep)))));
    }
    for (const id of this.cache.keys()) if (!index.runs.some((run) => run.id === id)) this.cache.delete(id);
    return { rows, index };
  }

  async read(id: string, sweep: string | null = this.cache.get(id)?.row.sweep ?? null): Promise<RunRow> {
    const folder = await this.runs.folder(id);
    const stamp = await fileStamp(folder);
    const cached = this.cache.get(id);
    // The process of a running run can end without writing a line.
    if (cached?.stamp === stamp && cached.row.state !== "running") return cached.row;
    const row = await this.readRow(id, sweep).catch((error: unknown) => brokenRow(id, sweep, errorMessage(error)));
    this.cache.set(id, { stamp, row });
    return row;
  }

  private async readRow(id: string, sweep: string | null): Promise<RunRow> {
    const problems: string[] = [];
    const note = (error: unknown) => void problems.push(errorMessage(error));
    const saved = await this.runs.readJson(id, "config.json").catch(note);
    const parsed = configSchema.safeParse(saved ?? {});
    const config = parsed.data ?? {};
    if (saved === undefined && problems.length === 0) problems.push("There is no config.json.");
    if (parsed.error !== undefined) problems.push(`config.json: ${z.prettifyError(parsed.error).split("\n")[0]}`);
    else if (saved !== undefined && config.version !== CONFIG_VERSION)
      problems.push(
        `config.json has version ${JSON.stringify(config.version) ?? "none"}, not ${CONFIG_VERSION}: what is readable is shown.`,
      );
    const metrics = await readLastLines(this.runs, id, METRICS_FILE);
    const log = await readLastLines(this.runs, id, LOG_FILE);
    const records = (metrics?.lines ?? []).map(parseRecord);
    const last = Object.assign({}, ...records) as Readonly<Record<string, number>>;
    const lines = (log?.lines ?? []).flatMap((line) => parseLogLine(line) ?? []);
    const changedMs = Math.max(metrics?.changedMs ?? 0, log?.changedMs ?? 0) || null;
    const limits = config as Readonly<Record<string, unknown>>;
    const { tags, note: text, problem } = await readNotes(this.runs, id);
    if (problem !== undefined) problems.push(problem);
    return {
      id,
      name: id,
      kind: parsed.data === undefined || saved === undefined ? "unknown" : config.env === undefined ? "sft" : "train",
      env: config.env ?? null,
      model: config.model ?? null,
      algorithm: config.algorithm ?? (config.env === undefined ? null : "ppo"),
      seed: config.seed ?? null,
      state: runState(lines, changedMs, saved !== undefined && saved !== null),
      problem: problems.length === 0 ? null : problems.join(" "),
      result: finite(last["rollout/ep_rew_mean"] ?? last["sft/loss"]),
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
      hasRollouts: await hasFile(this.runs, id, ROLLOUTS_FILE),
      hasJobs: await hasFile(this.runs, id, JOB_LOG_FILE),
    };
  }
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
  };
}

async function hasFile(runs: RunsFolder, id: string, name: string): Promise<boolean> {
  return runs.openFile(id, name).then(
    async (file) => file.close().then(() => true),
    () => false,
  );
}

/** Changes when one of the files that a row is read from does. */
async function fileStamp(folder: string): Promise<string> {
  const names = [METRICS_FILE, LOG_FILE, "config.json", "notes.json", ROLLOUTS_FILE];
  const stamps = await Promise.all(
    names.map(async (name) =>
      stat(join(folder, name)).then(
        ({ size, mtimeMs, ino }) => `${size}/${mtimeMs}/${ino}`,
        () => "",
      ),
    ),
  );
  return stamps.join();
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
      ["maxSteps", "step"],
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
