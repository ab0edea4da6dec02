import { appendFile, cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startRun } from "../runs/run.js";
import type {
  CompareResponse,
  EpisodeDetail,
  EpisodeList,
  GroupList,
  LiveEvent,
  MetricGroup,
  PlayState,
  RunDetail,
  RunList,
  SeriesResponse,
} from "./api.js";
import { startDashboard, type Dashboard } from "./server.js";

const HOSTILE = '<script>alert("\u001b]0;x\u0007")</script>';

const GLOBALS = [Request, Response];

let root: string;
let dashboard: Dashboard;
let origin: string;
let token: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "dashboard-"));
  const common = {
    env: "Blackjack-v1",
    actionMode: "choices",
    numEnvs: 4,
    saveSteps: 1,
    seed: 1,
    device: "cpu",
  } as const;
  await train("ppo", { ...common, batchSize: 16, miniBatchSize: 16, turns: 32 });
  await train("group/grpo", { ...common, algorithm: "grpo", batchSize: 8, numGenerations: 4, episodes: 8 });
  await makeRun("hostile", { env: HOSTILE, model: HOSTILE, version: 2 }, [{ step: 1, [HOSTILE]: 2 }]);
  dashboard = await startDashboard({ runs: root });
  ({ origin } = new URL(dashboard.url));
  token = new URL(dashboard.url).searchParams.get("token")!;
}, 120_000);

afterAll(async () => {
  await dashboard.close();
  await rm(root, { recursive: true });
});

async function train(name: string, options: Parameters<typeof startRun>[0]): Promise<void> {
  const run = await startRun(options, join(root, name));
  try {
    await run.train();
    await run.saveAdapter();
  } finally {
    await run.close();
  }
}

async function makeRun(name: string, config: object, records: readonly object[]): Promise<string> {
  const folder = join(root, name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "config.json"), JSON.stringify(config));
  await writeFile(join(folder, "metrics.jsonl"), records.map((record) => `${JSON.stringify(record)}\n`).join(""));
  return folder;
}

const call = async (path: string, init: Omit<RequestInit, "headers"> & { headers?: Record<string, string> } = {}) =>
  fetch(origin + path, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });

async function get<Answer>(path: string): Promise<Answer> {
  const response = await call(path);
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Answer;
}

const post = async (path: string, body: unknown, method = "POST") =>
  call(path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

/** Sends a request with headers that `fetch` does not allow. */
async function rawStatus(path: string, headers: Record<string, string>, method = "GET"): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      origin + path,
      { method, agent: false, headers: { authorization: `Bearer ${token}`, ...headers } },
      (response) => {
        response.resume();
        resolve(response.statusCode!);
      },
    );
    sent.on("error", reject).end();
  });
}

describe("access", () => {
  it("needs the token, which the link turns into a cookie", async () => {
    expect((await fetch(`${origin}/api/runs`)).status).toBe(401);
    expect((await fetch(`${origin}/?token=wrong`)).status).toBe(401);
    const opened = await fetch(dashboard.url, { redirect: "manual" });
    expect(opened.headers.get("location")).toBe("/");
    const cookie = opened.headers.get("set-cookie")!;
    expect(cookie).toMatch(/HttpOnly; SameSite=Strict/);
    expect((await fetch(`${origin}/api/runs`, { headers: { cookie: cookie.split(";")[0] } })).status).toBe(200);
  });

  it("refuses the host names and origins of other sites, and allows no inline script", async () => {
    expect(await rawStatus("/api/runs", { host: "attacker.example" })).toBe(421);
    expect(await rawStatus("/api/runs", { host: `localhost:${dashboard.port}` })).toBe(200);
    expect(await rawStatus("/api/runs", { origin: "http://attacker.example" })).toBe(403);
    expect(await rawStatus("/api/runs", { origin: "null" })).toBe(403);
    const { headers } = await call("/api/runs");
    expect(headers.get("content-security-policy")).toContain("script-src 'self'");
    expect(headers.get("content-security-policy")).not.toContain("unsafe");
    expect(headers.get("access-control-allow-origin")).toBeNull();
  });

  it("leaves the globals of the process as they are", async () => {
    expect(await fetch(`${origin}/api/runs`)).toBeInstanceOf(Response);
    expect([Request, Response]).toEqual(GLOBALS);
  });

  it("opens no file outside of the run folders", async () => {
    const outside = await mkdtemp(join(tmpdir(), "outside-"));
    await writeFile(join(outside, "metrics.jsonl"), '{"step":1,"secret":1}\n');
    await writeFile(join(outside, "config.json"), "{}");
    await symlink(outside, join(root, "linked-folder"));
    const folder = await makeRun("linked-files", { version: 2 }, []);
    for (const name of ["metrics.jsonl", "rollouts.jsonl", "log.jsonl", "notes.json"]) {
      await rm(join(folder, name), { force: true });
      await symlink(join(outside, "metrics.jsonl"), join(folder, name));
    }
    const { runs } = await get<RunList>("/api/runs");
    expect(runs.map(({ id }) => id)).not.toContain("linked-folder");
    const ids = ["..", "../ppo", "linked-folder", "ppo/../../x", "/etc", "ppo/..", "a\\b", "a\0b", outside];
    const answers = await Promise.all(ids.map(async (id) => call(`/api/runs/${encodeURIComponent(id)}`)));
    expect(answers.filter(({ ok }) => ok).map(({ url }) => url)).toEqual([]);
    const { metrics, log } = await get<RunDetail>("/api/runs/linked-files");
    expect({ metrics, log }).toEqual({ metrics: [], log: [] });
    expect(await get<EpisodeList>("/api/runs/linked-files/episodes")).toMatchObject({ episodes: [] });
    expect((await call("/docs/..%2Fpackage.json")).headers.get("content-type")).not.toContain("json");
    await Promise.all(
      [outside, folder, join(root, "linked-folder")].map(async (path) => rm(path, { recursive: true })),
    );
  });

  it("answers invalid requests with an error and its code", async () => {
    expect(await (await call("/api/nothing")).json()).toMatchObject({ code: "NOT_FOUND" });
    expect(await (await post("/api/runs/ppo/control", { action: "delete" })).json()).toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    expect(await (await post("/api/compare", "x")).json()).toMatchObject({ code: "INVALID_ARGUMENT" });
    const json = { "content-type": "application/json" };
    expect(await rawStatus("/api/runs/ppo/notes", { ...json, "content-length": String(2 ** 21) }, "PUT")).toBe(413);
    expect(await rawStatus("/api/runs/ppo/notes", {}, "PUT")).toBe(415);
    expect((await call("/api/runs/ppo/series?x=wrong")).status).toBe(400);
  });
});

describe("runs", () => {
  it("lists runs of any depth with their state and result", async () => {
    const { runs } = await get<RunList>("/api/runs");
    expect(runs.find(({ id }) => id === "ppo")).toMatchObject({
      env: "Blackjack-v1",
      algorithm: "ppo",
      state: "finished",
      problem: null,
      updates: 2,
      turns: 32,
      progress: 1,
      hasRollouts: true,
    });
    expect(runs.find(({ id }) => id === "group/grpo")).toMatchObject({ algorithm: "grpo", state: "finished" });
  });

  it("has the time of each phase, the memory, the log, checkpoints and references of a run", async () => {
    const detail = await get<RunDetail>("/api/runs/ppo");
    expect(detail.metrics).toContain("rollout/ep_rew_mean");
    expect(detail.references.map(({ name }) => name)).toEqual(["random actions", "best known"]);
    expect(detail.phases.rollout).toBeGreaterThan(0);
    expect(detail.phases.memoryBytes).toBeGreaterThan(1e6);
    expect(detail.log.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["start", "resources", "end"]));
    expect(detail.checkpoints.map(({ name }) => name)).toEqual(["000001", "000002", "adapter"]);
  });

  it("merges 100,000 records into the points that a page asks for, with their range", async () => {
    const records = Array.from({ length: 100_000 }, (_, i) => ({ step: i + 1, loss: i % 100 === 50 ? 9 : 1 }));
    await makeRun("long", { version: 2 }, records);
    const { series } = await get<SeriesResponse>("/api/runs/long/series?name=loss&x=updates&points=500");
    expect(series[0]).toMatchObject({ count: 100_000 });
    // The newest record is the last point; 201 records are merged into each of the others.
    expect(series[0].x).toHaveLength(499);
    expect([series[0].x.at(-1), series[0].max!.at(-1), series[0].min!.at(-1)]).toEqual([100_000, 1, 1]);
    expect(Math.max(...(series[0].max as number[]))).toBe(9);
    const zoomed = await get<SeriesResponse>("/api/runs/long/series?name=loss&x=updates&from=40&to=60");
    expect(zoomed.series[0].x).toEqual(Array.from({ length: 21 }, (_, i) => 40 + i));
    await rm(join(root, "long"), { recursive: true });
  });

  it("explains metrics as docs/metrics.md does", async () => {
    const groups = await get<MetricGroup[]>("/api/metrics");
    expect(groups.map(({ title }) => title)).toContain("Entropy");
    const entropy = groups.flatMap(({ metrics }) => metrics).find(({ names }) => names.includes("entropy"))!;
    expect(entropy.healthy).toContain("Falls slowly");
  });

  it("keeps tags and notes in the run folder, as they were written", async () => {
    const notes = { tags: [HOSTILE], note: HOSTILE };
    expect(await (await post("/api/runs/hostile/notes", notes, "PUT")).json()).toMatchObject(notes);
    const { runs } = await get<RunList>("/api/runs");
    expect(runs.find(({ id }) => id === "hostile")).toMatchObject({ ...notes, env: HOSTILE, model: HOSTILE });
    expect((await get<RunDetail>("/api/runs/hostile")).metrics).toEqual([HOSTILE]);
  });

  it("shows runs of another layout and broken ones with the reason", async () => {
    await makeRun("older", { version: 1, env: "CartPole-v1" }, [{ step: 3 }]);
    const broken = await makeRun("broken", {}, []);
    await writeFile(join(broken, "config.json"), '{"env": 3');
    const { runs } = await get<RunList>("/api/runs");
    expect(runs.find(({ id }) => id === "older")).toMatchObject({ env: "CartPole-v1", updates: 3 });
    expect(runs.find(({ id }) => id === "older")!.problem).toContain("version 1");
    expect(runs.find(({ id }) => id === "broken")!.problem).toContain("config.json cannot be read");
    for (const name of ["older", "broken"]) await rm(join(root, name), { recursive: true });
  });

  it("reads a run whose files end at any byte", async () => {
    const folder = await makeRun("cut", {}, []);
    const names = ["config.json", "metrics.jsonl", "rollouts.jsonl", "log.jsonl"];
    for (const name of names) await cp(join(root, "ppo", name), join(folder, name));
    for (const name of names) {
      const whole = await readFile(join(root, "ppo", name));
      const distance = 1 + Math.floor(whole.length / 13);
      for (let size = whole.length - 1; size >= 0; size -= distance) {
        await writeFile(join(folder, name), whole.subarray(0, size));
        expect((await get<RunDetail>("/api/runs/cut")).row.id).toBe("cut");
        await get("/api/runs/cut/series?name=loss");
        const { episodes } = await get<EpisodeList>("/api/runs/cut/episodes");
        if (episodes.length > 0) await get(`/api/runs/cut/episodes/${episodes[0].id}`);
      }
      await writeFile(join(folder, name), whole);
    }
    await rm(folder, { recursive: true });
  });

  it("lists 500 runs", async () => {
    const makeOne = async (i: number) => makeRun(`many/run-${i}`, { version: 2, env: "Blackjack-v1" }, [{ step: i }]);
    await Promise.all(Array.from({ length: 500 }, async (_, i) => makeOne(i)));
    const { runs } = await get<RunList>("/api/runs");
    expect(runs.filter(({ id }) => id.startsWith("many/"))).toHaveLength(500);
    await rm(join(root, "many"), { recursive: true });
  });
});

describe("episodes", () => {
  it("has everything about each token of a recorded episode", async () => {
    const { episodes, total, steps } = await get<EpisodeList>("/api/runs/ppo/episodes?limit=5");
    expect(steps).toEqual([1, 2]);
    expect(total).toBeGreaterThan(2);
    const episode = await get<EpisodeDetail>(`/api/runs/ppo/episodes/${episodes[0].id}`);
    const [turn] = episode.turns;
    expect(turn.observation).toContain("Your current total is");
    expect(turn.render).toContain("Dealer:");
    expect(turn.prompt.map((id) => episode.vocabulary.texts[id]).join("")).toContain(turn.observation!);
    for (const values of [
      turn.logProbs,
      turn.entropies,
      turn.values,
      turn.advantages,
      turn.returns,
      turn.ratios,
      turn.clipped,
    ])
      expect(values).toHaveLength(turn.tokens.length);
    expect(turn.marks).toHaveLength(turn.tokens.length);
    expect(Math.abs(turn.ratios![0]! - 1)).toBeLessThan(0.5);
    const [alternatives] = turn.alternatives!;
    expect(alternatives.reduce((sum, { probability }) => sum + probability!, 0)).toBeCloseTo(1, 3);
    const sampled = alternatives.find(({ token: id }) => id === turn.tokens[0])!;
    expect(Math.exp(turn.logProbs[0]!)).toBeCloseTo(sampled.probability!, 3);
  });

  it("has the groups of an update with all members", async () => {
    const { groups, step, steps } = await get<GroupList>(`/api/runs/${encodeURIComponent("group/grpo")}/groups`);
    expect([step, ...steps]).toEqual([1, 1]);
    expect(groups).toHaveLength(1);
    const [{ members }] = groups;
    expect(members).toHaveLength(4);
    expect(new Set(members.map(({ turns }) => turns[0].observation)).size).toBe(1);
    const [worst, best] = [0, -1].map((i) => members.toSorted((a, b) => a.row.return! - b.row.return!).at(i)!.row);
    expect(best.advantage! - worst.advantage!).toBeGreaterThanOrEqual(0);
    expect(members.every(({ row }) => row.hasSignal === best.return! > worst.return!)).toBe(true);
  });
});

/** A connection to /api/events, open when the first event has come. */
class EventReader {
  id = "";
  private text = "";

  private constructor(private readonly reader: ReadableStreamDefaultReader<string>) {}

  static async open(path: string, headers: Record<string, string> = {}): Promise<EventReader> {
    const { body } = await call(path, { headers });
    const events = new EventReader(body!.pipeThrough(new TextDecoderStream()).getReader());
    if ((await events.nextFields()).event !== "open") throw new Error("The first event is not open.");
    return events;
  }

  /** Returns the next event of a type. */
  async next<Type extends LiveEvent["type"]>(type: Type): Promise<Extract<LiveEvent, { type: Type }>> {
    for (;;) {
      const event = JSON.parse((await this.nextFields()).data) as LiveEvent;
      if (event.type === type) return event as Extract<LiveEvent, { type: Type }>;
    }
  }

  async close(): Promise<void> {
    await this.reader.cancel();
  }

  private async nextFields(): Promise<Record<string, string>> {
    while (!this.text.includes("\n\n")) this.text += (await this.reader.read()).value ?? "";
    const end = this.text.indexOf("\n\n");
    const lines = this.text.slice(0, end).split("\n");
    this.text = this.text.slice(end + 2);
    const fields = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s).slice(0, 2))) as Record<string, string>;
    this.id = fields.id ?? this.id;
    return fields;
  }
}

describe("live events", () => {
  it("sends new lines, and after a pause those since the last event", async () => {
    const folder = await makeRun("live", { version: 2 }, [{ step: 1, loss: 1 }]);
    const path = join(folder, "metrics.jsonl");
    const first = await EventReader.open("/api/events?run=live");
    await appendFile(path, '{"step":2,"loss":0.5}\n{"step":3,');
    expect(await first.next("metrics")).toEqual({
      type: "metrics",
      run: "live",
      records: [{ step: 2, loss: 0.5 }],
      isGap: false,
    });
    await first.close();
    await appendFile(path, '"loss":0.25}\n{"step":4,"loss":null}\n');
    const second = await EventReader.open("/api/events?run=live", { "last-event-id": first.id });
    const { records } = await second.next("metrics");
    expect(records).toEqual([
      { step: 3, loss: 0.25 },
      { step: 4, loss: null },
    ]);
    await writeFile(path, '{"step":1,"loss":7}\n');
    expect(await second.next("metrics")).toMatchObject({ isGap: true });
    await cp(join(root, "ppo", "rollouts.jsonl"), join(folder, "rollouts.jsonl"));
    expect((await second.next("episodes")).episodes.length).toBeGreaterThan(1);
    expect((await second.next("runs")).rows.map(({ id }) => id)).toEqual(["live"]);
    await second.close();
    await rm(folder, { recursive: true });
  });
});

describe("control", () => {
  it("leaves a request in the folder of a running run only", async () => {
    expect((await post("/api/runs/ppo/control", { action: "stop" })).status).toBe(409);
    const folder = await makeRun("running", { version: 2, env: "Blackjack-v1" }, [{ step: 1 }]);
    const { request: id } = (await (await post("/api/runs/running/control", { action: "stop" })).json()) as {
      request: string;
    };
    expect(await readdir(join(folder, "control"))).toEqual([`${id}.json`]);
    await rm(folder, { recursive: true });
  });
});

describe("play", () => {
  it("steps an episode by hand, with an edited observation and completion, and chats", async () => {
    const start = (await (await post("/api/play", { run: "ppo", seed: 3 })).json()) as PlayState;
    expect(start.actions!.reduce((sum, { probability }) => sum + probability!, 0)).toBeCloseTo(1, 5);
    const path = `/api/play/${start.session}`;
    const edited = { completion: "stay", observation: "Your current total is 5." };
    const stepped = (await (await post(`${path}/step`, edited)).json()) as PlayState;
    expect(stepped).toMatchObject({
      isDone: true,
      turns: [{ text: "stay", action: "stay", observation: edited.observation }],
    });
    expect((await post(`${path}/step`, {})).status).toBe(409);
    expect((await (await post(`${path}/reset`, { seed: 3 })).json()) as PlayState).toMatchObject({
      observation: start.observation,
      turns: [],
    });
    const reply = await post(`${path}/chat`, { messages: [{ role: "user", content: HOSTILE }], maxNewTokens: 3 });
    expect(reply.headers.get("content-type")).toContain("text/plain");
    expect(await reply.text()).not.toContain("LlamaGymError");
    expect((await call(path, { method: "DELETE" })).status).toBe(204);
    expect((await post(`${path}/step`, {})).status).toBe(404);
  });

  it("plays the same start with two checkpoints", async () => {
    const request = { a: { run: "ppo", checkpoint: "adapter" }, b: { run: "ppo", checkpoint: "000002" }, seed: 5 };
    const { a, b, partsAt } = (await (await post("/api/compare", request)).json()) as CompareResponse;
    expect(a.turns[0].observation).toBe(b.turns[0].observation);
    expect(a.turns).toEqual(b.turns);
    expect(partsAt).toBeNull();
  });

  it("loads no code that a run folder names", async () => {
    const folder = await makeRun("foreign", { version: 2, env: "./evil.js", model: "embedded" }, []);
    await cp(join(root, "ppo", "adapter"), join(folder, "adapter"), { recursive: true });
    expect(await (await post("/api/play", { run: "foreign" })).json()).toMatchObject({ code: "INVALID_ARGUMENT" });
    await rm(folder, { recursive: true });
  });
});
