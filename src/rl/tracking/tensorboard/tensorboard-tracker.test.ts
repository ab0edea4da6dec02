import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { maskedCrc32c } from "./crc32c.js";
import { EventSchema, HParamsPluginDataSchema, SessionLog_SessionStatus, type Event } from "./event_pb.js";
import { openTensorBoardTracker } from "./tensorboard-tracker.js";

const now = (): number => 1_700_000_000_250;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tensorboard-"));
});
afterEach(async () => rm(folder, { recursive: true, force: true }));

/**
 * The events of every file in the folder, in the order of the files' names, their checksums
 * checked.
 */
async function eventsOf(path: string): Promise<Event[]> {
  const events: Event[] = [];
  for (const name of (await readdir(path)).sort()) {
    const bytes = await readFile(join(path, name));
    for (let at = 0; at < bytes.length;) {
      const length = Number(bytes.readBigUInt64LE(at));
      const data = bytes.subarray(at + 12, at + 12 + length);
      expect(bytes.readUInt32LE(at + 8)).toBe(maskedCrc32c(bytes.subarray(at, at + 8)));
      expect(bytes.readUInt32LE(at + 12 + length)).toBe(maskedCrc32c(data));
      events.push(fromBinary(EventSchema, data));
      at += length + 16;
    }
  }
  return events;
}

describe("openTensorBoardTracker", () => {
  it("writes the same bytes as TensorBoard's writer", async () => {
    const tracker = openTensorBoardTracker(folder, { now });
    await tracker.logConfig({ lr: 0.001 });
    await tracker.log(1, { reward: 0.5, "objective/kl": 0 });
    await tracker.log(2, { reward: 1, "objective/kl": 0 });
    await tracker.logCompletions(2, [{ prompt: "Hit?", completion: "<b>`stay`</b>", reward: -1 }]);
    await tracker.close();
    const [name] = await readdir(folder);
    const fixture = new URL("../../../../test/fixtures/tracking/run.tfevents", import.meta.url);
    expect(await readFile(join(folder, name))).toEqual(await readFile(fixture));
    expect(name).toMatch(/^events\.out\.tfevents\.1700000000\./);
  });

  it("writes NaN, and infinite values also for those beyond float32", async () => {
    const tracker = openTensorBoardTracker(folder, { now });
    await tracker.log(1, { kl: NaN, loss: Infinity, grad: 1e300, reward: -3.5e38, largest: 3.4e38 });
    const [, { summary }] = await eventsOf(folder);
    const values = summary?.value.map(({ simpleValue }) => simpleValue);
    expect(values).toEqual([NaN, Infinity, Infinity, -Infinity, Math.fround(3.4e38)]);
    await tracker.close();
  });

  it("resumes in a new file that discards the steps after the checkpoint", async () => {
    const first = openTensorBoardTracker(folder, { now });
    for (let step = 1; step <= 4; step++) await first.log(step, { reward: step });
    await first.close();
    const second = openTensorBoardTracker(folder, { now, resumeFromStep: 2 });
    await second.log(3, { reward: 30 });
    const names = (await readdir(folder)).sort();
    expect(names.map((name) => name.at(-1))).toEqual(["0", "1"]);
    const events = await eventsOf(folder);
    const purge = events.findIndex(({ sessionLog }) => sessionLog?.status === SessionLog_SessionStatus.START);
    expect(events[purge].step).toBe(3n);
    expect(events.slice(purge + 1).map(({ step, summary }) => [step, summary?.value[0].simpleValue])).toEqual([
      [3n, 30],
    ]);
    await second.close();
  });

  it("quotes completions that contain code fences and writes every column", async () => {
    const tracker = openTensorBoardTracker(folder, { now });
    await tracker.logCompletions(1, [
      { prompt: "a\nb", completion: "```js\n1\n```", reward: 1 },
      { prompt: "c", completion: "d", reward: 0, kind: "json", parsed: false, note: null },
    ]);
    const tensor = (await eventsOf(folder))[1].summary?.value[0].tensor;
    expect(tensor?.tensorShape?.dim.map(({ size }) => Number(size))).toEqual([3, 6]);
    const cells = tensor?.stringVal.map((bytes) => new TextDecoder().decode(bytes));
    expect(cells?.slice(0, 6)).toEqual(
      ["prompt", "completion", "reward", "kind", "parsed", "note"].map((name) => `**${name}**`),
    );
    expect(cells?.slice(6, 12)).toEqual(["```\na\nb\n```", "````\n```js\n1\n```\n````", "1", "", "", ""]);
    expect(cells?.slice(15)).toEqual(["```\njson\n```", "false", ""]);
    await tracker.close();
  });

  it("flattens nested settings", async () => {
    const tracker = openTensorBoardTracker(folder, { now });
    await tracker.logConfig({ ppo: { lr: 1e-3, whiten: true, none: null }, model: "tiny", layers: [1, 2] });
    await tracker.close("failed");
    const events = await eventsOf(folder);
    const data = events.slice(2).map(({ summary }) => {
      const content = summary?.value[0].metadata?.pluginData?.content;
      return fromBinary(HParamsPluginDataSchema, content ?? new Uint8Array());
    });
    const hparams = Object.entries(data[0].sessionStartInfo?.hparams ?? {});
    expect(Object.fromEntries(hparams.map(([name, { kind }]) => [name, kind.value]))).toEqual({
      "ppo.lr": 1e-3,
      "ppo.whiten": true,
      model: "tiny",
      layers: "[1,2]",
    });
    expect(data[1].sessionEndInfo?.status).toBe(2);
  });
});
