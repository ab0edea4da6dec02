import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { runSettings } from "../runs/run-settings.js";
import { controlSchema, LIVE_SETTINGS, requestControl } from "../runs/run-control.js";
import { listReferences } from "../runs/run-curve.js";
import type { ApiError, ChangeableSetting, ControlResponse, RunDetail, RunList, XAxis } from "./api.js";
import { LiveEvents } from "./live-events.js";
import { readMetricCatalog } from "./metric-catalog.js";
import { MetricStore } from "./metric-store.js";
import { notesSchema, writeNotes } from "./notes.js";
import { parseBody } from "./parse-body.js";
import { addPlayRoutes } from "./play-routes.js";
import { listCheckpoints } from "./play-models.js";
import { readLog, toLogEntry } from "./read-log.js";
import { readSweep } from "./read-sweep.js";
import { RolloutStore } from "./rollout-store.js";
import type { RunsFolder } from "./run-files.js";
import { RunRows } from "./run-rows.js";

/** Between two looks at the files of watched runs: well below the second within which a line is on the page. */
const POLL_MS = 400;
/** Looks at the watched runs between two looks at all runs. */
const POLLS_PER_LIST = 5;
const X_AXES: readonly XAxis[] = ["turns", "updates", "seconds", "episodes"];

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
    return { root: basename(this.runs.root), runs: rows, sweeps, isReport: false };
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
      references: listReferences({
        env: row.env ?? undefined,
        envOptions: config.envOptions as Record<string, never> | undefined,
      }),
      last: await metrics.last(id),
      phases: { ...(await metrics.phases(id)), memoryBytes },
      log: log.map(toLogEntry),
      checkpoints: await listCheckpoints(runs, id),
      changeable:
        row.state === "running" && row.kind === "train" ? LIVE_SETTINGS.map((name) => describe(name, config)) : [],
    };
  }
}

/** Creates the routes below /api. Event streams end when `closed` is aborted. */
export function createApi(data: DashboardData, closed: AbortSignal): Hono {
  const api = new Hono();
  const { runs, rows, metrics, rollouts } = data;

  api.get("/runs", async (c) => c.json(await data.list()));
  api.get("/metrics", async (c) => c.json(await readMetricCatalog()));
  api.get("/runs/:run", async (c) => c.json(await data.detail(c.req.param("run"))));
  api.get("/runs/:run/series", async (c) => {
    const { x = "turns", points = "800", from, to } = c.req.query();
    if (!X_AXES.includes(x as XAxis))
      throw invalidArgument(`x must be one of ${X_AXES.join(", ")}, got ${JSON.stringify(x)}.`);
    await runs.folder(c.req.param("run"));
    return c.json(
      await metrics.series(c.req.param("run"), {
        names: c.req.queries("name"),
        x: x as XAxis,
        points: Number(points),
        from: optionalNumber(from),
        to: optionalNumber(to),
      }),
    );
  });
  api.put("/runs/:run/notes", async (c) => {
    await writeNotes(runs, c.req.param("run"), await parseBody(c, notesSchema));
    return c.json(await rows.read(c.req.param("run")));
  });
  api.get("/runs/:run/episodes", async (c) => {
    const { before, step, limit } = c.req.query();
    const query = { before, step: optionalNumber(step), limit: optionalNumber(limit) };
    return c.json(await rollouts.list(c.req.param("run"), query));
  });
  api.get("/runs/:run/episodes/:id", async (c) =>
    c.json(await rollouts.episode(c.req.param("run"), c.req.param("id"))),
  );
  api.get("/runs/:run/groups", async (c) =>
    c.json(await rollouts.groups(c.req.param("run"), optionalNumber(c.req.query("step")))),
  );
  api.post("/runs/:run/control", async (c) => {
    const id = c.req.param("run");
    const action = await parseBody(c, controlSchema);
    const { state } = await rows.read(id);
    if (state !== "running")
      throw new LlamaGymError("INVALID_STATE", `The run is ${state}: only a running one can be controlled.`);
    const request = await requestControl(await runs.folder(id), action);
    return c.json({ request } satisfies ControlResponse);
  });
  api.get("/events", async (c) => {
    const lastId = c.req.header("last-event-id");
    const events = await LiveEvents.open(runs, rows, c.req.queries("run") ?? [], lastId);
    return streamSSE(c, async (stream) => {
      // The first event has the position that a reconnecting page continues from.
      await stream.writeSSE({ event: "open", data: "{}", id: events.id });
      for (let polls = 0; !stream.aborted && !closed.aborted; polls++) {
        const list = polls % POLLS_PER_LIST === 0 ? await events.pollRows() : [];
        for (const event of [...list, ...(await events.poll())])
          await stream.writeSSE({ data: JSON.stringify(event), id: events.id });
        await sleep(POLL_MS, undefined, { signal: closed }).catch(() => {});
      }
    });
  });
  const closePlay = addPlayRoutes(api, runs);
  closed.addEventListener("abort", () => void closePlay());
  api.all("*", (c) => c.json({ code: "NOT_FOUND", message: "There is no such route." } satisfies ApiError, 404));
  return api;
}

function describe(name: (typeof LIVE_SETTINGS)[number], config: Readonly<Record<string, unknown>>): ChangeableSetting {
  const value = config[name];
  return { name, description: runSettings[name].description, value: typeof value === "number" ? value : null };
}

function optionalNumber(text: string | undefined): number | undefined {
  return text === undefined || text === "" || Number.isNaN(Number(text)) ? undefined : Number(text);
}
