import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { streamSSE } from "hono/streaming";
import type { z } from "zod";
import { errorMessage, invalidArgument, LlamaGymError } from "../../core/errors.js";
import { listReferences } from "../runs/run-curve.js";
import { controlAccess, createToken } from "./access.js";
import type { ApiError, Checkpoint, RunDetail, RunList, XAxis } from "./api.js";
import { LiveEvents } from "./live-events.js";
import { readMetricCatalog } from "./metric-catalog.js";
import { MetricStore } from "./metric-store.js";
import { notesSchema, writeNotes } from "./notes.js";
import { readLog, toLogEntry } from "./read-log.js";
import { readSweep } from "./read-sweep.js";
import { RunsFolder } from "./run-files.js";
import { RunRows } from "./run-rows.js";
import { openPage } from "./static-files.js";

/** Bytes of a request: notes and conversations have some kB. */
const MAX_BODY_BYTES = 2 ** 20;
/** Between two looks at the files of watched runs: well below the second within which a line is on the page. */
const POLL_MS = 400;
/** Looks at the watched runs between two looks at all runs. */
const POLLS_PER_LIST = 5;
const X_AXES: readonly XAxis[] = ["turns", "updates", "seconds", "episodes"];

const STATUS: Readonly<Partial<Record<string, 400 | 404 | 409>>> = {
  INVALID_ARGUMENT: 400,
  FILE_NOT_FOUND: 404,
  INVALID_STATE: 409,
};

export interface DashboardOptions {
  /** Folder of runs. */
  readonly runs: string;
  readonly host?: string;
  /** 0 picks a free one. */
  readonly port?: number;
  /** Folder of the built page; that of the package by default. */
  readonly page?: string;
}

/** A running dashboard. */
export interface Dashboard {
  /** Link with the token. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Serves the dashboard of a folder of runs. @throws FILE_NOT_FOUND, INVALID_ARGUMENT for a port or host that cannot be used. */
export async function startDashboard({
  runs,
  host = "127.0.0.1",
  port = 0,
  page,
}: DashboardOptions): Promise<Dashboard> {
  const token = createToken();
  const folder = await RunsFolder.open(runs);
  const closed = new AbortController();
  const app = new Hono();
  app.use(controlAccess(token, [host]));
  app.use(bodyLimit({ maxSize: MAX_BODY_BYTES }));
  app.onError((error, c) => {
    const code = error instanceof LlamaGymError ? error.code : "INTERNAL";
    return c.json({ code, message: errorMessage(error) } satisfies ApiError, STATUS[code] ?? 500);
  });
  app.route("/api", createApi(folder, closed.signal));
  app.get("*", await openPage(page));
  const server = serve({ fetch: app.fetch, hostname: host, port });
  await new Promise<void>((resolve, reject) => {
    server.once("listening", resolve);
    server.once("error", (error) =>
      reject(
        invalidArgument(`The dashboard cannot listen on ${host}:${port}: ${error.message}. Choose another --port.`),
      ),
    );
  });
  const actualPort = (server.address() as { port: number }).port;
  const shownHost = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${shownHost}:${actualPort}/?token=${token}`,
    port: actualPort,
    close: async () => {
      closed.abort();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        if ("closeAllConnections" in server) server.closeAllConnections();
      });
    },
  };
}

function createApi(runs: RunsFolder, closed: AbortSignal): Hono {
  const api = new Hono();
  const rows = new RunRows(runs);
  const metrics = new MetricStore(runs);

  api.get("/runs", async (c) => {
    const { rows: list, index } = await rows.list();
    const sweeps = await Promise.all(index.sweeps.map(async (id) => readSweep(runs, id)));
    return c.json({ root: basename(runs.root), runs: list, sweeps, isReport: false } satisfies RunList);
  });
  api.get("/metrics", async (c) => c.json(await readMetricCatalog()));
  api.get("/runs/:run", async (c) => c.json(await readDetail(runs, rows, metrics, c.req.param("run"))));
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
    await writeNotes(runs, c.req.param("run"), parse(notesSchema, await c.req.json().catch(() => undefined)));
    return c.json(await rows.read(c.req.param("run")));
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
  api.all("*", (c) => c.json({ code: "NOT_FOUND", message: "There is no such route." } satisfies ApiError, 404));
  return api;
}

async function readDetail(runs: RunsFolder, rows: RunRows, metrics: MetricStore, id: string): Promise<RunDetail> {
  const row = await rows.read(id);
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
    changeable: [],
  };
}

async function listCheckpoints(runs: RunsFolder, id: string): Promise<readonly Checkpoint[]> {
  const names = (await runs.list(id, "checkpoints")).filter((name) => /^\d{1,12}$/.test(name)).sort();
  const adapter = await runs.list(id, "adapter");
  return [
    ...names.map((name): Checkpoint => ({ name, updates: Number(name) })),
    ...(adapter.length > 0 ? [{ name: "adapter", updates: null }] : []),
  ];
}

function parse<Value>(schema: z.ZodType<Value>, given: unknown): Value {
  const { data, error } = schema.safeParse(given);
  if (error === undefined) return data;
  const [{ path, message }] = error.issues;
  throw invalidArgument(`The request is not valid at ${path.join(".") || "its top"}: ${message}.`);
}

function optionalNumber(text: string | undefined): number | undefined {
  return text === undefined || text === "" || Number.isNaN(Number(text)) ? undefined : Number(text);
}
