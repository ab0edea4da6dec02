import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startFakeWandb, type FakeWandb } from "../../../test/support/fake-wandb.js";
import { combineTrackers, type TrackerSource } from "../../rl/tracking/combine-trackers.js";
import { openJsonlTracker } from "../../rl/tracking/jsonl/jsonl-tracker.js";
import { openRunTrackers } from "../../rl/tracking/open-run-trackers.js";
import { openTensorBoardTracker } from "../../rl/tracking/tensorboard/tensorboard-tracker.js";
import type { ResumePoint, Tracker } from "../../rl/tracking/tracker.js";
import { resolveWandbConfig, type WandbMode } from "./wandb/wandb-config.js";
import { openWandbTracker } from "./wandb/wandb-tracker.js";

type Open = (folder: string, options?: ResumePoint) => Tracker | Promise<Tracker>;

let server: FakeWandb;
let folder: string;
beforeEach(async () => {
  server = await startFakeWandb();
  folder = await mkdtemp(join(tmpdir(), "trackers-"));
});
afterEach(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

async function exists(path: string): Promise<boolean> {
  return readdir(path).then(
    () => true,
    () => false,
  );
}

const unwelcome = (message: string): void => expect.unreachable(message);

function wandbOf(mode: WandbMode) {
  const settings = resolveWandbConfig({ project: "cards", mode }, { WANDB_BASE_URL: server.url, WANDB_API_KEY: "key" });
  if (settings === undefined) throw new Error("W&B is off");
  return settings;
}

const openWandb =
  (mode: WandbMode): TrackerSource =>
  async () =>
    openWandbTracker(folder, wandbOf(mode), { onWarning: unwelcome });

const trackers: Readonly<Record<string, Open>> = {
  jsonl: openJsonlTracker,
  tensorboard: openTensorBoardTracker,
  "wandb offline": (path, options) => openWandbTracker(path, wandbOf("offline"), { ...options, onWarning: unwelcome }),
  "wandb online": (path, options) => openWandbTracker(path, wandbOf("online"), { ...options, onWarning: unwelcome }),
};

/** Texts and numbers that a form could stumble over. */
const rows = [
  { prompt: "", completion: "a\r\nb\u2028\u0000\u{1f0a1}</td>|`", reward: -0, kind: null },
  { prompt: "x".repeat(100_000), completion: '{"a":1}', reward: 1e308, extra: true },
];
const record = {
  reward: NaN,
  "a/b c": Infinity,
  loss: -Infinity,
  tiny: 5e-324,
  count: 2 ** 53,
  "": 0,
  step: 3,
  __proto__: 1,
};

describe.each(Object.keys(trackers))("%s", (name) => {
  const open = trackers[name];

  it("takes a whole run, whatever the numbers and texts", async () => {
    const warnings: string[] = [];
    const run = combineTrackers([() => open(folder)], { onWarning: (text) => warnings.push(text) });
    await run.logConfig({ lr: 1e-5, nested: { list: [1, "a", null], none: null }, "": "" });
    await run.log(1, record);
    await run.log(1, {});
    await run.logCompletions(1, []);
    await run.logCompletions(1, rows);
    await run.log(2 ** 31, record);
    await run.close("failed");
    expect(warnings).toEqual([]);
  });

  it.each([0, 2, 1e6])("is continued from step %i, also where it was never begun", async (resumeFrom) => {
    const warnings: string[] = [];
    for (const path of ["begun", "begun", "not begun"]) {
      const options = path === "begun" && !(await exists(join(folder, path))) ? {} : { resumeFromStep: resumeFrom };
      const run = combineTrackers([() => open(join(folder, path), options)], {
        onWarning: (text) => warnings.push(text),
      });
      await run.logConfig({ lr: 1 });
      for (let step = 1; step <= 3; step++) await run.log(step, { reward: step });
      await run.logCompletions(3, rows);
      await run.close();
    }
    expect(warnings).toEqual([]);
  });

  it("may be closed twice, and takes nothing after that", async () => {
    const tracker = await open(folder);
    await tracker.close?.();
    await tracker.close?.();
    await expect((async () => tracker.log(1, { reward: 1 }))()).rejects.toMatchObject({ code: "INVALID_STATE" });
  });

  it("says FILE_WRITE_FAILED of a folder that cannot be", async () => {
    await writeFile(join(folder, "file"), "");
    const opening = (async () => open(join(folder, "file", "run")))();
    await expect(opening).rejects.toMatchObject({ code: "FILE_WRITE_FAILED" });
  });
});

describe("openRunTrackers", () => {
  it("puts each form where its readers look for it", async () => {
    const run = openRunTrackers(folder, { trackers: [openWandb("offline")], onWarning: unwelcome });
    await run.log(1, { reward: 1 });
    await run.close();
    expect((await readdir(folder)).sort()).toEqual(["metrics.jsonl", "samples.jsonl", "tensorboard", "wandb"]);
  });

  it("writes no more than asked", async () => {
    const run = openRunTrackers(folder, { tensorboard: false, onWarning: unwelcome });
    await run.close();
    expect((await readdir(folder)).sort()).toEqual(["metrics.jsonl", "samples.jsonl"]);
  });

  it("leaves out what cannot be written, says so once for each, and goes on", async () => {
    await writeFile(join(folder, "file"), "");
    const place = join(folder, "file", "run");
    const seen: number[] = [];
    const warnings: string[] = [];
    const own: Tracker = { log: (step) => void seen.push(step) };
    const wandb: TrackerSource = async () => openWandbTracker(place, wandbOf("online"), { onWarning: unwelcome });
    const run = openRunTrackers(place, { trackers: [wandb, own], onWarning: (text) => warnings.push(text) });
    for (let step = 1; step <= 3; step++) await run.log(step, { reward: step });
    await run.close();
    expect(seen).toEqual([1, 2, 3]);
    expect(warnings).toEqual(Array(3).fill(expect.stringContaining(place)));
  });
});
