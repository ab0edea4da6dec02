import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startFakeWandb, type FakeWandb } from "../../../../test/support/fake-wandb.js";
import { readRecords } from "./log-format.js";
import { RecordSchema, type Record as WandbRecord } from "./record_pb.js";
import { resolveWandbConfig, type WandbConfig } from "./wandb-config.js";
import { openWandbTracker } from "./wandb-tracker.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "wandb-"));
});
afterEach(async () => rm(folder, { recursive: true, force: true }));

function settingsFor(env: Record<string, string>): WandbConfig {
  const settings = resolveWandbConfig(
    { project: "cards", mode: env.WANDB_BASE_URL === undefined ? "offline" : "online" },
    env,
  );
  if (settings === undefined) throw new Error("W&B is off");
  return settings;
}

const offline = settingsFor({});
const quiet = { onWarning: (text: string): void => expect.unreachable(text) };
const row = { prompt: "Hit?", completion: "stay", reward: 1 };

async function runFile(): Promise<string> {
  const [name] = await readdir(join(folder, "wandb"));
  const id = name.split("-").at(-1);
  return join(folder, "wandb", name, `run-${id}.wandb`);
}

async function records(): Promise<WandbRecord[]> {
  const bytes = await readFile(await runFile());
  return [...readRecords(bytes)].map(({ data }) => fromBinary(RecordSchema, data));
}

/** The history as objects; NaN and Infinity as texts. */
async function rows(): Promise<Record<string, unknown>[]> {
  return (await records()).flatMap(({ recordType }) => {
    if (recordType.case !== "history") return [];
    const cells = recordType.value.item.map(({ nestedKey, valueJson }) => [nestedKey[0], parsed(valueJson)]);
    return [Object.fromEntries(cells) as Record<string, unknown>];
  });
}

function parsed(json: string): unknown {
  return /^-?(NaN|Infinity)$/.test(json) ? json : JSON.parse(json);
}

describe("openWandbTracker online", () => {
  let server: FakeWandb;
  let online: WandbConfig;
  beforeEach(async () => {
    server = await startFakeWandb();
    online = settingsFor({ WANDB_BASE_URL: server.url, WANDB_API_KEY: "secret" });
  });
  afterEach(async () => server.close());

  const fast = { flushIntervalMs: 0, retryDelaysMs: [0, 0, 0] };
  const sent = (): Record<string, unknown>[] =>
    server.history.map((line) => JSON.parse(line) as Record<string, unknown>);

  it("sends the settings, rows, tables and exit code", async () => {
    const notes: string[] = [];
    const tracker = await openWandbTracker(folder, online, { ...quiet, ...fast, onInfo: (text) => notes.push(text) });
    await tracker.logConfig({ lr: 0.001 });
    for (let step = 1; step <= 4; step++) await tracker.log(step, { reward: step });
    await tracker.logCompletions(4, [row]);
    await tracker.close();
    expect(sent().map(({ _step, reward }) => [_step, reward])).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
      [4, 4],
    ]);
    expect(server.config()).toEqual({ lr: { value: 0.001 } });
    expect(server.summary()).toMatchObject({ reward: 4, _step: 4, completions: { nrows: 1 } });
    expect([...server.uploads.keys()]).toEqual([expect.stringMatching(/^media\/table\/completions_4_/)]);
    expect([...server.authorizationHeaders]).toEqual([`Basic ${Buffer.from("api:secret").toString("base64")}`]);
    expect(server.exits).toEqual([0]);
    expect(notes).toEqual([expect.stringMatching(`^W&B run "brave-sea-1": ${server.url}/me/cards/runs/`)]);
    expect(await rows()).toHaveLength(4);
  });

  it("files the run under the sweep of wandb agent", async () => {
    const environment = { WANDB_RUN_ID: "trial1", WANDB_SWEEP_ID: "s1", WANDB_BASE_URL: server.url };
    const settings = settingsFor({ ...environment, WANDB_API_KEY: "secret" });
    server.runs.set("trial1", {});
    const tracker = await openWandbTracker(folder, { ...settings, resume: "never" }, { ...quiet, ...fast });
    await tracker.log(1, { reward: 1 });
    await tracker.close();
    expect([...server.runs]).toEqual([["trial1", { sweep: "s1" }]]);
    expect(sent()).toHaveLength(1);
  });

  it.each([
    ["allow", [5, 6, 7, 8], "continues"],
    ["must", [5, 6, 7, 8], "continues"],
    [undefined, [10, 10, 10, 10, 5, 6, 7, 8], "overwrites"],
  ] as const)("with WANDB_RESUME %s, a run that the server has gets %j (%s)", async (resume, rewards, verb) => {
    const settings = { ...online, runId: "mine" };
    const first = await openWandbTracker(join(folder, "a"), settings, { ...quiet, ...fast });
    for (let step = 1; step <= 4; step++) await first.log(step, { reward: step });
    await first.close();
    const second = await openWandbTracker(join(folder, "b"), { ...settings, resume }, { ...quiet, ...fast });
    for (let step = 1; step <= 8; step++) await second.log(step, { reward: step < 5 ? 10 : step });
    await second.close();
    const kept = verb === "continues" ? [1, 2, 3, 4] : [];
    expect(sent().map(({ reward }) => reward)).toEqual([...kept, ...rewards]);
    expect([...server.runs.keys()]).toEqual(["mine"]);
  });

  it.each([
    ["must", 'W&B has no run "mine"'],
    ["never", 'W&B has a run "mine"'],
  ] as const)("sends nothing when WANDB_RESUME %s does not apply", async (resume, reason) => {
    const settings = { ...online, runId: "mine" };
    if (resume === "never") {
      const first = await openWandbTracker(join(folder, "a"), settings, { ...quiet, ...fast });
      await first.log(1, { reward: 1 });
      await first.close();
    }
    const warnings: string[] = [];
    const options = { ...fast, onWarning: (text: string) => warnings.push(text) };
    const second = await openWandbTracker(join(folder, "b"), { ...settings, resume }, options);
    await second.log(2, { reward: 2 });
    await second.close();
    expect(warnings).toEqual([expect.stringContaining(reason)]);
    expect(server.history).toHaveLength(resume === "never" ? 1 : 0);
  });

  it("retries while the server fails", async () => {
    server.failureStatuses.push(503, 429, 500);
    const tracker = await openWandbTracker(folder, online, { ...quiet, ...fast });
    await tracker.log(1, { reward: 1 });
    await expect.poll(() => server.requests.length).toBeGreaterThanOrEqual(4);
    await tracker.close();
    expect(sent().map(({ _step }) => _step)).toEqual([1]);
  });

  it.each([
    [401, "rejects the key in WANDB_API_KEY"],
    [500, "status 500"],
    [404, "status 404"],
  ])("keeps the run file and warns once when the server responds with %i", async (status, reason) => {
    server.failureStatuses.push(...Array<number>(50).fill(status));
    const warnings: string[] = [];
    const tracker = await openWandbTracker(folder, online, { ...fast, onWarning: (text) => warnings.push(text) });
    await tracker.log(1, { reward: 1 });
    await expect.poll(() => server.requests.length).toBe(status === 500 ? 4 : 1);
    for (let step = 2; step <= 5; step++) await tracker.log(step, { reward: step });
    await tracker.close();
    expect(warnings).toEqual([expect.stringContaining(reason)]);
    expect(warnings[0]).toContain("wandb sync");
    expect((await rows()).map(({ _step }) => _step)).toEqual([1, 2, 3, 4, 5]);
  });

  it("keeps the run file when the server is unreachable or there is no key", async () => {
    await server.close();
    const warnings: string[] = [];
    const options = { ...fast, onWarning: (text: string) => warnings.push(text) };
    const away = await openWandbTracker(join(folder, "away"), online, options);
    await away.log(1, { reward: 1 });
    await away.close();
    const keyless = await openWandbTracker(join(folder, "keyless"), { ...online, apiKey: undefined }, options);
    await keyless.log(1, { reward: 1 });
    await keyless.close();
    expect(warnings).toEqual([expect.stringContaining("no response"), expect.stringContaining("set WANDB_API_KEY")]);
  });

  it("sends the missing rows of a resumed run", async () => {
    const before = await openWandbTracker(folder, offline, quiet);
    await before.logConfig({ lr: 1 });
    for (let step = 1; step <= 3; step++) await before.log(step, { reward: step, early: step });
    await before.close();
    // Never sent so far; then sent up to step 6, and resumed from step 4 on another day.
    const second = await openWandbTracker(folder, online, { ...quiet, ...fast, resumeFromStep: 3 });
    for (let step = 4; step <= 6; step++) await second.log(step, { reward: step });
    await second.close("failed");
    expect(sent().map(({ _step }) => _step)).toEqual([1, 2, 3, 4, 5, 6]);
    const third = await openWandbTracker(folder, online, { ...quiet, ...fast, resumeFromStep: 4 });
    for (let step = 5; step <= 8; step++) await third.log(step, { reward: step });
    await third.close();
    expect(sent().map(({ _step, reward }) => [_step, reward])).toEqual(
      Array.from({ length: 8 }, (_, i) => [i + 1, i + 1]),
    );
    expect(server.summary()).toMatchObject({ reward: 8, early: 3 });
    expect(server.exits).toEqual([1, 0]);
  });
});
