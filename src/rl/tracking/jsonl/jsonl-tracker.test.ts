import { appendFile, mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openJsonlTracker } from "./jsonl-tracker.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "jsonl-"));
});
afterEach(async () => rm(folder, { recursive: true, force: true }));

const read = (name: string): Promise<string> => readFile(join(folder, name), "utf8");

async function writeRun(steps: number): Promise<void> {
  const tracker = await openJsonlTracker(folder);
  for (let step = 1; step <= steps; step++) {
    await tracker.log(step, { reward: step / 2, "objective/kl": 0.1 });
  }
  await tracker.close();
}

describe("openJsonlTracker", () => {
  it("writes one record per line", async () => {
    await writeRun(2);
    expect(await read("metrics.jsonl")).toBe(
      '{"step":1,"reward":0.5,"objective/kl":0.1}\n{"step":2,"reward":1,"objective/kl":0.1}\n',
    );
  });

  it("writes each record before the call returns, with null for NaN and infinite values", async () => {
    const tracker = await openJsonlTracker(join(folder, "deeper"));
    void tracker.log(7, { kl: NaN, loss: -Infinity, step: 3 });
    expect(await read("deeper/metrics.jsonl")).toBe('{"step":7,"kl":null,"loss":null}\n');
    await tracker.close();
    expect(() => tracker.log(8, {})).toThrow("is closed");
  });

  it("fails once its file or folder is deleted or moved", async () => {
    for (const change of [
      async (name: string) => rm(join(folder, name, "metrics.jsonl")),
      async (name: string) => rm(join(folder, name), { recursive: true }),
      async (name: string) => rename(join(folder, name), join(folder, `${name}-moved`)),
    ]) {
      const name = crypto.randomUUID();
      const tracker = await openJsonlTracker(join(folder, name));
      await tracker.log(1, {});
      await change(name);
      expect(() => tracker.log(2, {})).toThrow(/could not be written: it was deleted or replaced/);
      await tracker.close();
    }
  });

  it("resumes from a checkpoint and discards later lines", async () => {
    await writeRun(9);
    const whole = await read("metrics.jsonl");
    await appendFile(join(folder, "metrics.jsonl"), '{"step":10,"rew');
    const tracker = await openJsonlTracker(folder, { resumeFromStep: 6 });
    for (let step = 7; step <= 9; step++) {
      await tracker.log(step, { reward: step / 2, "objective/kl": 0.1 });
    }
    await tracker.close();
    expect(await read("metrics.jsonl")).toBe(whole);
    expect((await readdir(folder)).sort()).toEqual(["metrics.jsonl"]);
  });

  it("keeps complete lines around incomplete ones", async () => {
    const lines = [
      '{"step":1,"reward":1}',
      "\u0000\u0000",
      '{"reward":1}',
      "[1]",
      '{"step":2,"reward":2}',
      '{"step":3}',
    ];
    await writeFile(join(folder, "metrics.jsonl"), lines.join("\n"));
    const tracker = await openJsonlTracker(folder, { resumeFromStep: 3 });
    await tracker.log(3, { reward: 3 });
    expect(await read("metrics.jsonl")).toBe('{"step":1,"reward":1}\n{"step":2,"reward":2}\n{"step":3,"reward":3}\n');
    await tracker.close();
  });

  it("creates files that a resumed run lacks", async () => {
    const tracker = await openJsonlTracker(folder, { resumeFromStep: 5 });
    await tracker.log(6, { reward: 1 });
    await tracker.close();
    expect(await read("metrics.jsonl")).toBe('{"step":6,"reward":1}\n');
  });

  it("does not overwrite another run", async () => {
    await writeRun(1);
    await expect(openJsonlTracker(folder)).rejects.toMatchObject({ code: "INVALID_STATE" });
    expect(await read("metrics.jsonl")).toContain('"step":1');
  });

  it("reports a folder that is a file", async () => {
    await writeFile(join(folder, "file"), "");
    await expect(openJsonlTracker(join(folder, "file"))).rejects.toMatchObject({ code: "FILE_WRITE_FAILED" });
    await mkdir(join(folder, "metrics.jsonl"));
    await expect(openJsonlTracker(folder, { resumeFromStep: 0 })).rejects.toMatchObject({ code: "FILE_READ_FAILED" });
  });
});
