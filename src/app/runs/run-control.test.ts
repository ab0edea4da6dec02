import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { clearControl, requestControl, takeControlRequests } from "./run-control.js";
import type { RunLog } from "./run-log.js";

let root: string;
let run: string;
let outside: string;
const control = vi.fn<RunLog["control"]>();
const take = () => takeControlRequests(run, { control } as unknown as RunLog, async () => ({}));

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "control-"));
  [run, outside] = [join(root, "run"), join(root, "outside")];
  await mkdir(run);
  await mkdir(outside);
  await writeFile(join(outside, "stop.json"), '{"action":"stop"}');
  control.mockReset();
});
afterEach(() => rm(root, { recursive: true }));

describe("requests in a run folder", () => {
  it("are carried out and removed", async () => {
    await requestControl(run, { action: "checkpoint" });
    expect(await take()).toEqual({ checkpoint: true });
    expect(await readdir(join(run, "control"))).toEqual([]);
  });

  it("are neither written, read nor removed through a link to a folder", async () => {
    await symlink(outside, join(run, "control"));
    await expect(requestControl(run, { action: "stop" })).rejects.toMatchObject({ code: "FILE_WRITE_FAILED" });
    expect(await take()).toEqual({});
    await clearControl(run);
    expect(await readdir(outside)).toEqual(["stop.json"]);
    await requestControl(run, { action: "stop" });
    expect(await take()).toEqual({ stop: true });
  });

  it("are not read through a link to a file, which is removed", async () => {
    await mkdir(join(run, "control"));
    await symlink(join(outside, "stop.json"), join(run, "control", "1-link.json"));
    await mkdir(join(run, "control", "2-folder.json"));
    expect(await take()).toEqual({});
    expect(control.mock.calls.map(([, id, isDone]) => [id, isDone])).toEqual([
      ["1-link", false],
      ["2-folder", false],
    ]);
    expect(await readdir(join(run, "control"))).toEqual([]);
    expect(await readdir(outside)).toEqual(["stop.json"]);
  });

  it("are refused where the folder of requests is a file", async () => {
    await writeFile(join(run, "control"), "");
    await expect(requestControl(run, { action: "stop" })).rejects.toMatchObject({ code: "FILE_WRITE_FAILED" });
    expect(await take()).toEqual({});
  });
});
