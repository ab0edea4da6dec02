import { basename } from "node:path";
import { LIVE_SETTINGS } from "../runs/run-control.js";
import { listReferences } from "../runs/run-curve.js";
import { findRunEnv } from "../runs/run-env.js";
import { runSettings } from "../runs/run-settings.js";
import type { ChangeableSetting, RunDetail, RunList } from "./api.js";
import { MetricStore } from "./metric-store.js";
import { listCheckpoints } from "./list-checkpoints.js";
import { readLog, toLogEntry } from "./read-log.js";
import { readSweep } from "./read-sweep.js";
import { RolloutStore } from "./rollout-store.js";
import type { RunsFolder } from "./run-files.js";
import { RunRows } from "./run-rows.js";

/** Everything that answers about the runs of a folder. */
export class DashboardData {
  readonly rows: RunRows;
  readonly metrics: MetricStore;
  readonly rollouts: RolloutStore;

  constructor(readonly runs: RunsFolder) {
    this.rows = new RunRows(runs);
    this.metrics = new MetricStore(runs);
    this.rollouts = new RolloutStore(runs);
  }

  async list(): Promise<RunList> {
    const { rows, index } = await this.rows.list();
    const sweeps = await Promise.all(index.sweeps.map(async (id) => readSweep(this.runs, id)));
    return { root: this.runs.only ?? basename(this.runs.root), runs: rows, sweeps, isReport: false };
  }

  async detail(id: string): Promise<RunDetail> {
    const { runs, metrics } = this;
    const row = await this.rows.read(id);
    const config = (await runs.readJson(id, "config.json").catch(() => undefined)) ?? {};
    const log = await readLog(runs, id);
    const memoryBytes = log.findLast((line) => line.memoryBytes !== undefined)?.memoryBytes ?? null;
    return {
      row,
      config,
      metrics: await metrics.names(id),
      references: listReferences(findRunEnv({ ...config, env: row.env ?? undefined })),
      last: await metrics.last(id),
      phases: { ...(await metrics.phases(id)), memoryBytes },
      log: log.map(toLogEntry),
      checkpoints: await listCheckpoints(runs, id),
      changeable:
        row.state === "running"
          ? LIVE_SETTINGS.filter((name) => Object.hasOwn(config, name)).map((name) => describe(name, config))
          : [],
    };
  }
}

function describe(name: (typeof LIVE_SETTINGS)[number], config: Readonly<Record<string, unknown>>): ChangeableSetting {
  const value = config[name];
  return { name, description: runSettings[name].description, value: typeof value === "number" ? value : null };
}
