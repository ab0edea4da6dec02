import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startFakeWandb, type FakeWandb } from "../../../test/support/fake-wandb.js";
import { checkTracker } from "../../rl/tracking/check-tracker.js";
import type { TrackerSource } from "../../rl/tracking/combine-trackers.js";
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

const unexpectedWarning = (message: string): void => expect.unreachable(message);

function wandbConfig(mode: WandbMode) {
  const settings = resolveWandbConfig({ project: "cards", mode }, { WANDB_BASE_URL: server.url, WANDB_API_KEY: "key" });
  if (settings === undefined) throw new Error("W&B is off");
  return settings;
}

const openWandb =
  (mode: WandbMode): TrackerSource =>
  async () =>
    openWandbTracker(folder, wandbConfig(mode), { onWarning: unexpectedWarning });

const trackers: Readonly<Record<string, Open>> = {
  jsonl: openJsonlTracker,
  tensorboard: openTensorBoardTracker,
  "wandb offline": (path, options) =>
    openWandbTracker(path, wandbConfig("offline"), { ...options, onWarning: unexpectedWarning }),
  "wandb online": (path, options) =>
    openWandbTracker(path, wandbConfig("online"), { ...options, onWarning: unexpectedWarning }),
};

describe.each(Object.keys(trackers))("%s", (name) => {
  const open = trackers[name];

  it("passes checkTracker", async () => {
    let runs = 0;
    const openRun = () => {
      const path = join(folder, `run-${runs++}`);
      return (options: ResumePoint) => open(path, options);
    };
    await expect(checkTracker(openRun)).resolves.toBeUndefined();
  });

  it("rejects records after it is closed", async () => {
    const tracker = await open(folder);
    await tracker.close?.();
    await expect((async () => tracker.log(1, { reward: 1 }))()).rejects.toMatchObject({ code: "INVALID_STATE" });
  });

  it("throws FILE_WRITE_FAILED for a folder below a file", async () => {
    await writeFile(join(folder, "file"), "");
    const opening = (async () => open(join(folder, "file", "run")))();
    await expect(opening).rejects.toMatchObject({ code: "FILE_WRITE_FAILED" });
  });
});

describe("openRunTrackers", () => {
  it("writes each format where its readers expect it", async () => {
    const run = openRunTrackers(folder, { trackers: [openWandb("offline")], onWarning: unexpectedWarning });
    await run.log(1, { reward: 1 });
    await run.close();
    expect((await readdir(folder)).sort()).toEqual(["metrics.jsonl", "tensorboard", "wandb"]);
  });

  it("writes no TensorBoard files if disabled", async () => {
    const run = openRunTrackers(folder, { tensorboard: false, onWarning: unexpectedWarning });
    await run.close();
    expect((await readdir(folder)).sort()).toEqual(["metrics.jsonl"]);
  });

  it("drops trackers that fail, with one warning each", async () => {
    await writeFile(join(folder, "file"), "");
    const place = join(folder, "file", "run");
    const seen: number[] = [];
    const warnings: string[] = [];
    const own: Tracker = { log: (step) => void seen.push(step) };
    const wandb: TrackerSource = async () =>
      openWandbTracker(place, wandbConfig("online"), { onWarning: unexpectedWarning });
    const run = openRunTrackers(place, { trackers: [wandb, own], onWarning: (text) => warnings.push(text) });
    for (let step = 1; step <= 3; step++) await run.log(step, { reward: step });
    await run.close();
    expect(seen).toEqual([1, 2, 3]);
    expect(warnings).toEqual(Array(3).fill(expect.stringContaining(place)));
  });
});
