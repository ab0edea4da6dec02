import { setTimeout as sleep } from "node:timers/promises";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { controlSchema, requestControl } from "../runs/run-control.js";
import type { ApiError, ControlResponse, XAxis } from "./api.js";
import type { DashboardData } from "./dashboard-data.js";
import { LiveEvents } from "./live-events.js";
import { readMetricCatalog } from "./metric-catalog.js";
import { notesSchema, writeNotes } from "./notes.js";
import { parseBody } from "./parse-body.js";
import { addPlayRoutes } from "./play-routes.js";
import { readJobs } from "./read-jobs.js";
import { readLeagueInfo } from "./read-league.js";

/**
 * Between two looks at the files of watched runs: well below the second within which a line is on
 * the page.
 */
const POLL_MS = 400;
/** Looks at the watched runs between two looks at all runs. */
const POLLS_PER_LIST = 10;
const X_AXES: readonly XAxis[] = ["turns", "updates", "seconds", "episodes"];

/** Creates the routes below /api. Event streams end when `closed` is aborted. */
export function createApi(data: DashboardData, closed: AbortSignal, allowsFiles: boolean): Hono {
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
  api.get("/runs/:run/jobs", async (c) => c.json(await readJobs(runs, c.req.param("run"))));
  api.get("/runs/:run/league", async (c) => c.json(await readLeagueInfo(runs, c.req.param("run"))));
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
        const added = [...list, ...(await events.poll())];
        // Only the last event has the position after all of them: a page that loses the connection
        // before gets them again.
        for (const [i, event] of added.entries())
          await stream.writeSSE({ data: JSON.stringify(event), ...(i === added.length - 1 ? { id: events.id } : {}) });
        // Without `closed` as its signal, which would get a listener for each open page; its timer
        // keeps no process running.
        await sleep(POLL_MS, undefined, { ref: false });
      }
    });
  });
  const closePlay = addPlayRoutes(api, runs, allowsFiles);
  closed.addEventListener("abort", () => void closePlay());
  api.all("*", (c) => c.json({ code: "NOT_FOUND", message: "There is no such route." } satisfies ApiError, 404));
  return api;
}

function optionalNumber(text: string | undefined): number | undefined {
  return text === undefined || text === "" || Number.isNaN(Number(text)) ? undefined : Number(text);
}
