import { appendFile, cp, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DashboardServer } from "../../../test/support/dashboard-server.js";
import type * as api from "./api.js";

const HOSTILE = '<script>alert("\u001b]0;x\u0007")</script>';

const GLOBALS = [Request, Response];

let server: DashboardServer;
let root: string;
beforeAll(async () => {
  server = await DashboardServer.start();
  ({ root } = server);
  const common = { env: "Blackjack-v1", actionMode: "choices", numEnvs: 4, saveSteps: 1, seed: 1 } as const;
  await server.train("ppo", { ...common, batchSize: 16, miniBatchSize: 16, turns: 32 });
  await server.train("group/grpo", { ...common, algorithm: "grpo", batchSize: 8, numGenerations: 4, episodes: 8 });
  await server.makeRun("hostile", { env: HOSTILE, model: HOSTILE, version: 2 }, [{ step: 1, [HOSTILE]: 2 }]);
}, 120_000);

afterAll(() => server.stop());

describe("access", () => {
  it("needs the token, which the link turns into a cookie", async () => {
    expect((await fetch(`${server.origin}/api/runs`)).status).toBe(401);
    expect((await fetch(`${server.origin}/?token=wrong`)).status).toBe(401);
    const opened = await fetch(server.dashboard.url, { redirect: "manual" });
    expect(opened.headers.get("location")).toBe("/");
    const cookie = opened.headers.get("set-cookie")!;
    expect(cookie).toMatch(/HttpOnly; SameSite=Strict/);
    expect((await fetch(`${server.origin}/api/runs`, { headers: { cookie: cookie.split(";")[0] } })).status).toBe(200);
  });

  it("refuses the host names and origins of other sites, and allows no inline script", async () => {
    expect(await server.rawStatus("/api/runs", { host: "attacker.example" })).toBe(421);
    expect(await server.rawStatus("/api/runs", { host: `localhost:${server.dashboard.port}` })).toBe(200);
    expect(await server.rawStatus("/api/runs", { origin: "http://attacker.example" })).toBe(403);
    expect(await server.rawStatus("/api/runs", { origin: "null" })).toBe(403);
    const { headers } = await server.call("/api/runs");
    expect(headers.get("content-security-policy")).toContain("script-src 'self'");
    expect(headers.get("content-security-policy")).not.toContain("unsafe");
    expect(headers.get("access-control-allow-origin")).toBeNull();
  });

  it("leaves the globals of the process as they are", async () => {
    expect(await fetch(`${server.origin}/api/runs`)).toBeInstanceOf(Response);
    expect([Request, Response]).toEqual(GLOBALS);
  });

  it("opens no file outside of the run folders", async () => {
    const outside = await mkdtemp(join(tmpdir(), "outside-"));
    await writeFile(join(outside, "metrics.jsonl"), '{"step":1,"secret":1}\n');
    await writeFile(join(outside, "config.json"), "{}");
    await symlink(outside, join(root, "linked-folder"));
    const folder = await server.makeRun("linked-files", { version: 2 }, []);
    for (const name of ["metrics.jsonl", "rollouts.jsonl", "log.jsonl", "notes.json"]) {
      await rm(join(folder, name), { force: true });
      await symlink(join(outside, "metrics.jsonl"), join(folder, name));
    }
    const { runs } = await server.get<api.RunList>("/api/runs");
    expect(runs.map(({ id }) => id)).not.toContain("linked-folder");
    const ids = ["..", "../ppo", "linked-folder", "ppo/../../x", "/etc", "ppo/..", "a\\b", "a\0b", outside];
    const answers = await Promise.all(ids.map(async (id) => server.call(`/api/runs/${encodeURIComponent(id)}`)));
    expect(answers.filter(({ ok }) => ok).map(({ url }) => url)).toEqual([]);
    const { metrics, log } = await server.get<api.RunDetail>("/api/runs/linked-files");
    expect({ metrics, log }).toEqual({ metrics: [], log: [] });
    expect(await server.get<api.EpisodeList>("/api/runs/linked-files/episodes")).toMatchObject({ episodes: [] });
    expect((await server.call("/docs/..%2Fpackage.json")).headers.get("content-type")).not.toContain("json");
    await Promise.all(
      [outside, folder, join(root, "linked-folder")].map(async (path) => rm(path, { recursive: true })),
    );
  });

  it("answers invalid requests with an error and its code", async () => {
    expect(await (await server.call("/api/nothing")).json()).toMatchObject({ code: "NOT_FOUND" });
    expect(await (await server.post("/api/runs/ppo/control", { action: "delete" })).json()).toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    expect(await (await server.post("/api/compare", "x")).json()).toMatchObject({ code: "INVALID_ARGUMENT" });
    const json = { "content-type": "application/json" };
    expect(await server.rawStatus("/api/runs/ppo/notes", { ...json, "content-length": String(2 ** 21) }, "PUT")).toBe(
      413,
    );
    expect(await server.rawStatus("/api/runs/ppo/notes", {}, "PUT")).toBe(415);
    expect((await server.call("/api/runs/ppo/series?x=wrong")).status).toBe(400);
  });
});

describe("runs", () => {
  it("lists runs of any depth with their state and result", async () => {
    const { runs } = await server.get<api.RunList>("/api/runs");
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
    const detail = await server.get<api.RunDetail>("/api/runs/ppo");
    expect(detail.metrics).toContain("rollout/ep_rew_mean");
    expect(detail.references.map(({ name }) => name)).toEqual(["random actions", "best known"]);
    expect(detail.phases.rollout).toBeGreaterThan(0);
    expect(detail.phases.memoryBytes).toBeGreaterThan(1e6);
    expect(detail.log.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["start", "resources", "end"]));
    expect(detail.checkpoints.map(({ name }) => name)).toEqual(["000001", "000002", "adapter"]);
  });

  it("merges 100,000 records into the points that a page asks for, with their range", async () => {
    const records = Array.from({ length: 100_000 }, (_, i) => ({ step: i + 1, loss: i % 100 === 50 ? 9 : 1 }));
    await server.makeRun("long", { version: 2 }, records);
    const { series } = await server.get<api.SeriesResponse>("/api/runs/long/series?name=loss&x=updates&points=500");
    expect(series[0]).toMatchObject({ count: 100_000 });
    // The newest record is the last point; 201 records are merged into each of the others.
    expect(series[0].x).toHaveLength(499);
    expect([series[0].x.at(-1), series[0].max!.at(-1), series[0].min!.at(-1)]).toEqual([100_000, 1, 1]);
    expect(Math.max(...(series[0].max as number[]))).toBe(9);
    const zoomed = await server.get<api.SeriesResponse>("/api/runs/long/series?name=loss&x=updates&from=40&to=60");
    expect(zoomed.series[0].x).toEqual(Array.from({ length: 21 }, (_, i) => 40 + i));
    await rm(join(root, "long"), { recursive: true });
  });

  it("explains metrics as docs/metrics.md does", async () => {
    const groups = await server.get<api.MetricGroup[]>("/api/metrics");
    expect(groups.map(({ title }) => title)).toContain("Entropy");
    const entropy = groups.flatMap(({ metrics }) => metrics).find(({ names }) => names.includes("entropy"))!;
    expect(entropy.healthy).toContain("Falls slowly");
  });

  it("keeps tags and notes in the run folder, as they were written", async () => {
    const notes = { tags: [HOSTILE], note: HOSTILE };
    expect(await (await server.post("/api/runs/hostile/notes", notes, "PUT")).json()).toMatchObject(notes);
    const { runs } = await server.get<api.RunList>("/api/runs");
    expect(runs.find(({ id }) => id === "hostile")).toMatchObject({ ...notes, env: HOSTILE, model: HOSTILE });
    expect((await server.get<api.RunDetail>("/api/runs/hostile")).metrics).toEqual([HOSTILE]);
  });

  it("shows runs of another layout and broken ones with the reason", async () => {
    await server.makeRun("older", { version: 1, env: "CartPole-v1" }, [{ step: 3 }]);
    const broken = await server.makeRun("broken", {}, []);
    await writeFile(join(broken, "config.json"), '{"env": 3');
    const { runs } = await server.get<api.RunList>("/api/runs");
    expect(runs.find(({ id }) => id === "older")).toMatchObject({ env: "CartPole-v1", updates: 3 });
    expect(runs.find(({ id }) => id === "older")!.problem).toContain("version 1");
    expect(runs.find(({ id }) => id === "broken")!.problem).toContain("config.json cannot be read");
    for (const name of ["older", "broken"]) await rm(join(root, name), { recursive: true });
  });

  it("lists 500 runs", async () => {
    const makeOne = async (i: number) =>
      server.makeRun(`many/run-${i}`, { version: 2, env: "Blackjack-v1" }, [{ step: i }]);
    await Promise.all(Array.from({ length: 500 }, async (_, i) => makeOne(i)));
    const { runs } = await server.get<api.RunList>("/api/runs");
    expect(runs.filter(({ id }) => id.startsWith("many/"))).toHaveLength(500);
    await rm(join(root, "many"), { recursive: true });
  });
});

describe("episodes", () => {
  it("has everything about each token of a recorded episode", async () => {
    const { episodes, total, steps } = await server.get<api.EpisodeList>("/api/runs/ppo/episodes?limit=5");
    expect(steps).toEqual([1, 2]);
    expect(total).toBeGreaterThan(2);
    const episode = await server.get<api.EpisodeDetail>(`/api/runs/ppo/episodes/${episodes[0].id}`);
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
    expect(turn.ratios![0]).toBeGreaterThan(0);
    const [alternatives] = turn.alternatives!;
    expect(alternatives.reduce((sum, { probability }) => sum + probability!, 0)).toBeCloseTo(1, 3);
    const sampled = alternatives.find(({ token: id }) => id === turn.tokens[0])!;
    expect(Math.exp(turn.logProbs[0]!)).toBeCloseTo(sampled.probability!, 3);
  });

  it("has the groups of an update with all members", async () => {
    const { groups, step, steps } = await server.get<api.GroupList>(
      `/api/runs/${encodeURIComponent("group/grpo")}/groups`,
    );
    expect([step, ...steps]).toEqual([1, 1]);
    expect(groups).toHaveLength(1);
    const [{ members }] = groups;
    expect(members).toHaveLength(4);
    expect(new Set(members.map(({ turns }) => turns[0].observation)).size).toBe(1);
    const [worst, best] = [0, -1].map((i) => members.toSorted((a, b) => a.row.return! - b.row.return!).at(i)!.row);
    expect(Math.sign(best.advantage! - worst.advantage!)).toBe(Math.sign(best.return! - worst.return!));
    expect(members.every(({ row }) => row.hasSignal === best.return! > worst.return!)).toBe(true);
  });
});

describe("live events", () => {
  it("sends new lines, and after a pause those since the last event", async () => {
    const folder = await server.makeRun("live", { version: 2 }, [{ step: 1, loss: 1 }]);
    const path = join(folder, "metrics.jsonl");
    const first = await server.openEvents("/api/events?run=live");
    await appendFile(path, '{"step":2,"loss":0.5}\n{"step":3,');
    expect(await first.next("metrics")).toEqual({
      type: "metrics",
      run: "live",
      records: [{ step: 2, loss: 0.5 }],
      isGap: false,
    });
    await first.close();
    await appendFile(path, '"loss":0.25}\n{"step":4,"loss":null}\n');
    const second = await server.openEvents("/api/events?run=live", { "last-event-id": first.id });
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

  it.each([
    [{ model: "/etc/model" }, /"\/etc\/model" may be a file.*--allow-files/],
    [{ model: "." }, /--allow-files/],
    [{ envOptions: { rules: { path: "../secret.txt" } } }, /option "rules" may be a file.*--allow-files/],
    [{ envOptions: { game: "game.z8" } }, /option "game" may be a file/],
    [{ env: "mcp:touch /tmp/x" }, /Use llamagym play/],
  ])("opens no file that a run folder names: %j", async (settings, message) => {
    const config = { version: 2, env: "Blackjack-v1", model: "embedded", ...settings };
    const folder = await server.makeRun("foreign", config, []);
    await cp(join(root, "ppo", "adapter"), join(folder, "adapter"), { recursive: true });
    expect(await (await server.post("/api/play", { run: "foreign" })).json()).toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringMatching(message) as string,
    });
    await rm(folder, { recursive: true });
  });
});

describe("control", () => {
  it("leaves a request in the folder of a running run only", async () => {
    expect((await server.post("/api/runs/ppo/control", { action: "stop" })).status).toBe(409);
    const folder = await server.makeRun("running", { version: 2, env: "Blackjack-v1" }, [{ step: 1 }]);
    const { request: id } = (await (await server.post("/api/runs/running/control", { action: "stop" })).json()) as {
      request: string;
    };
    expect(await readdir(join(folder, "control"))).toEqual([`${id}.json`]);
    await rm(folder, { recursive: true });
  });
});

describe("play", () => {
  it("steps an episode by hand, with an edited observation and completion, and chats", async () => {
    const start = (await (await server.post("/api/play", { run: "ppo", seed: 3 })).json()) as api.PlayState;
    expect(start.actions!.reduce((sum, { probability }) => sum + probability!, 0)).toBeCloseTo(1, 5);
    const path = `/api/play/${start.session}`;
    const edited = { completion: "stay", observation: "Your current total is 5." };
    const stepped = (await (await server.post(`${path}/step`, edited)).json()) as api.PlayState;
    expect(stepped).toMatchObject({
      isDone: true,
      turns: [{ text: "stay", action: "stay", observation: edited.observation }],
    });
    expect((await server.post(`${path}/step`, {})).status).toBe(409);
    expect((await (await server.post(`${path}/reset`, { seed: 3 })).json()) as api.PlayState).toMatchObject({
      observation: start.observation,
      turns: [],
    });
    const reply = await server.post(`${path}/chat`, {
      messages: [{ role: "user", content: HOSTILE }],
      maxNewTokens: 3,
    });
    expect(reply.headers.get("content-type")).toContain("text/plain");
    expect(await reply.text()).not.toContain("LlamaGymError");
    expect((await server.call(path, { method: "DELETE" })).status).toBe(204);
    expect((await server.post(`${path}/step`, {})).status).toBe(404);
  });

  it("plays the same start with two checkpoints", async () => {
    const request = { a: { run: "ppo", checkpoint: "adapter" }, b: { run: "ppo", checkpoint: "000002" }, seed: 5 };
    const { a, b, partsAt } = (await (await server.post("/api/compare", request)).json()) as api.CompareResponse;
    expect(a.turns[0].observation).toBe(b.turns[0].observation);
    expect(a.turns).toEqual(b.turns);
    expect(partsAt).toBeNull();
  });

  it("loads no code that a run folder names", async () => {
    const folder = await server.makeRun("foreign", { version: 2, env: "./evil.js", model: "embedded" }, []);
    await cp(join(root, "ppo", "adapter"), join(folder, "adapter"), { recursive: true });
    expect(await (await server.post("/api/play", { run: "foreign" })).json()).toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    await rm(folder, { recursive: true });
  });
});
