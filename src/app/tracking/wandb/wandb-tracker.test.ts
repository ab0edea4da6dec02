import { appendFile, mkdtemp, readFile, readdir, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
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

describe("openWandbTracker offline", () => {
  it("writes the run, its settings, its rows with their summaries, and its exit", async () => {
    let time = 1_700_000_000_000;
    const tracker = await openWandbTracker(folder, offline, { ...quiet, now: () => time });
    await tracker.logConfig({ ppo: { lr: 0.001 } });
    time += 1500;
    await tracker.log(1, { reward: 0.5, "objective/kl": NaN });
    await tracker.close();
    const found = await records();
    expect(found.map(({ recordType }) => recordType.case)).toEqual([
      "header",
      "run",
      "config",
      "summary",
      "history",
      "exit",
    ]);
    expect(found.map(({ num }) => Number(num))).toEqual([1, 2, 3, 4, 5, 6]);
    expect(found[1].recordType.value).toMatchObject({ project: "cards", startTime: { seconds: 1_700_000_000n } });
    expect(found[2].recordType.value).toMatchObject({ update: [{ key: "ppo", valueJson: '{"lr":0.001}' }] });
    const values = { reward: 0.5, "objective/kl": "NaN", _step: 1, _timestamp: 1_700_000_001.5, _runtime: 1.5 };
    expect(await rows()).toEqual([values]);
    expect(found[5].recordType.value).toMatchObject({ exitCode: 0, runtime: 2 });
    expect((await readdir(join(folder, "wandb")))[0]).toMatch(/^offline-run-20231114_\d{6}-[a-z0-9]{8}$/);
  });

  it("writes completions as a table", async () => {
    const tracker = await openWandbTracker(folder, offline, quiet);
    await tracker.logCompletions(3, [row, { ...row, kind: "json" }]);
    await tracker.close("failed");
    const [{ completions }] = (await rows()) as { completions: { path: string } }[];
    expect(completions).toMatchObject({ _type: "table-file", ncols: 4, nrows: 2 });
    const table = await readFile(join(await runFile(), "..", "files", completions.path), "utf8");
    const columns = ["prompt", "completion", "reward", "kind"];
    const data = [
      ["Hit?", "stay", 1, null],
      ["Hit?", "stay", 1, "json"],
    ];
    expect(JSON.parse(table)).toEqual({ columns, data });
    const files = (await records()).find(({ recordType }) => recordType.case === "files");
    expect(files?.recordType.value).toMatchObject({ files: [{ path: completions.path }] });
    expect((await records()).at(-1)?.recordType.value).toMatchObject({ exitCode: 1 });
  });

  it("writes one row per step for any number of calls", async () => {
    const tracker = await openWandbTracker(folder, offline, quiet);
    await tracker.log(1, { reward: 1 });
    await tracker.log(2, { reward: 2, loss: 5 });
    await tracker.logCompletions(2, [row]);
    await tracker.log(2, { loss: 6, "eval/reward": 3 });
    await tracker.log(3, { reward: 3 });
    await tracker.close();
    const found = await rows();
    expect(found.map(({ _step }) => _step)).toEqual([1, 2, 3]);
    expect(found[1]).toMatchObject({ reward: 2, loss: 6, "eval/reward": 3, completions: { nrows: 1 } });
    expect((await records()).map(({ num }) => Number(num))).toEqual((await records()).map((_, index) => index + 1));
  });

  it("resumes from a checkpoint and discards later rows", async () => {
    const first = await openWandbTracker(folder, offline, { ...quiet, now: () => 1_700_000_000_000 });
    for (let step = 1; step <= 5; step++) await first.log(step, { reward: step, early: 1 });
    await first.logCompletions(5, [row]);
    await first.close();
    const file = await runFile();
    const second = await openWandbTracker(folder, offline, { ...quiet, resumeFromStep: 3 });
    await second.log(3, { "eval/reward": 9 });
    await second.log(4, { reward: 40 });
    await second.close();
    expect(await readdir(join(folder, "wandb"))).toHaveLength(1);
    expect(await runFile()).toBe(file);
    const found = await rows();
    expect(found.map(({ _step, reward }) => [_step, reward])).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
      [4, 40],
    ]);
    expect(found[2]["eval/reward"]).toBe(9);
    expect(found[3].early).toBeUndefined();
    const kinds = (await records()).map(({ recordType }) => recordType.case);
    expect(kinds.filter((kind) => kind === "exit" || kind === "files" || kind === "run")).toEqual(["run", "exit"]);
  });

  it.each([1, 30, 200])("resumes a file that lacks its last %i bytes", async (missing) => {
    const first = await openWandbTracker(folder, offline, quiet);
    for (let step = 1; step <= 300; step++) await first.log(step, { reward: step, text: 1 / 3 });
    const file = await runFile();
    await truncate(file, (await readFile(file)).length - missing);
    const second = await openWandbTracker(folder, offline, { ...quiet, resumeFromStep: 299 });
    await second.log(300, { reward: 300 });
    await second.close();
    expect((await rows()).map(({ _step }) => _step)).toEqual(Array.from({ length: 300 }, (_, index) => index + 1));
  });

  it("takes the run id and the sweep of wandb agent, and resumes that run", async () => {
    const settings = settingsFor({ WANDB_RUN_ID: "Trial-1.a", WANDB_SWEEP_ID: "s1" });
    const first = await openWandbTracker(folder, settings, quiet);
    for (let step = 1; step <= 3; step++) await first.log(step, { reward: step });
    await first.close();
    const second = await openWandbTracker(folder, settings, { ...quiet, resumeFromStep: 2 });
    await second.close();
    const [name, ...others] = await readdir(join(folder, "wandb"));
    expect(others).toEqual([]);
    const bytes = await readFile(join(folder, "wandb", name, "run-Trial-1.a.wandb"));
    const found = [...readRecords(bytes)].map(({ data }) => fromBinary(RecordSchema, data).recordType);
    expect(found[1].value).toMatchObject({ runId: "Trial-1.a", sweepId: "s1" });
    expect(found.filter((record) => record.case === "history")).toHaveLength(2);
  });

  it("reports a damaged run file", async () => {
    const first = await openWandbTracker(folder, offline, quiet);
    await first.close();
    await truncate(await runFile(), 0);
    await appendFile(await runFile(), "nothing of the kind");
    const second = openWandbTracker(folder, offline, { ...quiet, resumeFromStep: 3 });
    await expect(second).rejects.toMatchObject({ code: "FILE_CORRUPT" });
  });

  it("reports how to upload the run", async () => {
    const notes: string[] = [];
    const tracker = await openWandbTracker(folder, offline, { ...quiet, onInfo: (text) => notes.push(text) });
    await tracker.close();
    expect(notes).toEqual([expect.stringContaining(`wandb sync ${folder}`)]);
  });
});
