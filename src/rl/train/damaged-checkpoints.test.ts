import { cp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { CountingEnv } from "../../../test/support/counting.js";
import { CountingRuns, recordRun, type RecordedRun } from "../../../test/support/counting-runs.js";
import { BestModel } from "./best-model.js";
import { addAllChecksums } from "../../core/files/checksums.js";

let runs: CountingRuns;
let whole: RecordedRun;
let saved: string;
let checkpoints: string;
beforeAll(async () => {
  runs = await CountingRuns.open();
  whole = await recordRun(await runs.setUp());
  saved = await runs.createFolder();
  await recordRun(await runs.setUp({ checkpointDir: saved, saveSteps: 1 }), { updates: 3 });
});
afterAll(() => runs.close());
beforeEach(async () => {
  checkpoints = await runs.createFolder();
  await cp(saved, checkpoints, { recursive: true });
});

const flip = async (...names: string[]) => {
  const path = join(checkpoints, ...names);
  const bytes = await readFile(path);
  bytes[bytes.length >> 1] ^= 4;
  await writeFile(path, bytes);
};

/** Replaces a part of state.json and renews the checksums, as a faulty program would. */
const rewriteState = async (name: string, change: (state: string) => string) => {
  const folder = join(checkpoints, name);
  const path = join(folder, "state.json");
  await writeFile(path, change(await readFile(path, "utf8")));
  await rm(join(folder, "SHA256SUMS"));
  await addAllChecksums(folder);
};

describe("a damaged checkpoint", () => {
  it("is named, and the run resumes from the one before with the same numbers", async () => {
    await flip("000003", "optimizer.safetensors");
    const onWarning = vi.fn<(message: string) => void>();
    const again = await runs.setUp({ checkpointDir: checkpoints, onWarning });
    expect(await again.trainer.resume()).toBe(2);
    expect(onWarning.mock.calls.flat()).toEqual([
      expect.stringMatching(/000003 is not used: .*optimizer\.safetensors is damaged: its SHA-256/),
      expect.stringMatching(/resumes from the earlier checkpoint .*000002/),
    ]);
    const rest = await recordRun(again);
    expect(rest.logs).toEqual(whole.logs.slice(2));
    expect(rest.values).toEqual(whole.values);
    expect(await readdir(checkpoints)).toEqual(["000002", "000004"]);
  });

  it("is removed with the next checkpoint, so that two good ones are kept", async () => {
    await flip("000003", "state.json");
    const again = await runs.setUp({ checkpointDir: checkpoints, saveSteps: 1, turns: 36 });
    await again.trainer.resume();
    const stop = new AbortController();
    stop.abort();
    await again.trainer.train({ signal: stop.signal });
    const longer = await runs.setUp({ checkpointDir: checkpoints, saveSteps: 1 });
    await longer.trainer.resume();
    await recordRun(longer);
    expect(await readdir(checkpoints)).toEqual(["000003", "000004"]);
  });

  it("is an error if there is no other", async () => {
    await flip("000003", "adapter_model.safetensors");
    await rm(join(checkpoints, "000002", "SHA256SUMS"));
    const { trainer } = await runs.setUp({ checkpointDir: checkpoints });
    await expect(trainer.resume()).rejects.toMatchObject({
      code: "FILE_CORRUPT",
      message: expect.stringMatching(/No checkpoint in .* can be resumed\. The newest: .*adapter_model/) as string,
    });
  });

  it.each([
    ["trainer.seconds", (text: string) => text.replace(/"seconds": [^,]+/, '"seconds": null')],
    ["trainer.updates", (text: string) => text.replace(/"updates": 3/, '"updates": 1e999')],
    ["optimizer.step", (text: string) => text.replace(/"step": \d+/, '"step": null')],
  ])("is refused for %s without a number", async (field, change) => {
    await rewriteState("000003", change);
    const onWarning = vi.fn<(message: string) => void>();
    const { trainer } = await runs.setUp({ checkpointDir: checkpoints, onWarning });
    expect(await trainer.resume()).toBe(2);
    expect(onWarning.mock.calls[0][0]).toContain(`state.json is damaged: ${field}: expected number`);
    await trainer.close();
  });

  it.each([
    ["klCoef", /"klCoef": [^,]+/, "null", /klCoef in the checkpoint is null, not a number/],
    ["klCoef", /"klCoef": [^,]+/, "1e999", /klCoef is Infinity/],
    ["squares", /"squares": [^\n]+/, "null", /rewardScale: squares in the checkpoint is null/],
    ["return", /"return": [^,]+/, "null", /episode of <CountingEnv> .* has the return null/],
    ["uinteger", /"uinteger": [^\n]+/, "null", /"uinteger":null} is not the state of a random stream/],
  ])("is not resumed for a state whose %s has the value %j", async (name, found, value, message) => {
    await rewriteState("000003", (text) => text.replace(found, `"${name}": ${value}`));
    const onWarning = vi.fn<(message: string) => void>();
    const again = await runs.setUp({ checkpointDir: checkpoints, onWarning });
    expect(await again.trainer.resume()).toBe(2);
    expect(onWarning.mock.calls.flat()).toEqual([
      expect.stringMatching(message),
      expect.stringMatching(/resumes from the earlier checkpoint .*000002/),
    ]);
    const rest = await recordRun(again);
    expect(rest.logs).toEqual(whole.logs.slice(2));
    expect(rest.values).toEqual(whole.values);
  });

  it("is not resumed for parameters that are not finite", async () => {
    const path = join(checkpoints, "000003", "adapter_model.safetensors");
    const bytes = await readFile(path);
    bytes.fill(0xff, bytes.length - 4);
    await writeFile(path, bytes);
    await rewriteState("000003", (text) => text);
    const onWarning = vi.fn<(message: string) => void>();
    const again = await runs.setUp({ checkpointDir: checkpoints, onWarning });
    expect(await again.trainer.resume()).toBe(2);
    expect(onWarning.mock.calls[0][0]).toMatch(/000003 is not used: .*lora_B.* contains NaN/);
    expect((await recordRun(again)).values).toEqual(whole.values);
  });

  it("is refused as an adapter", async () => {
    await flip("000003", "adapter_model.safetensors");
    const { agent } = await runs.setUp();
    await expect(agent.load(join(checkpoints, "000003"))).rejects.toMatchObject({
      code: "FILE_CORRUPT",
      message: expect.stringContaining("remove SHA256SUMS") as string,
    });
  });
});

describe("the best model", () => {
  it("is refused if it is damaged", async () => {
    const { agent } = await runs.setUp();
    const best = new BestModel(agent, checkpoints);
    await best.saveIfBetter({ updates: 1, meanReturn: 0.5 });
    await flip("best-000001", "value_head.safetensors");
    await expect(best.load()).rejects.toMatchObject({
      code: "FILE_CORRUPT",
      message: expect.stringContaining("value_head.safetensors is damaged") as string,
    });
  });

  it("needs an evaluation that is a number, written and read", async () => {
    const { agent } = await runs.setUp();
    const best = new BestModel(agent, checkpoints);
    await expect(best.saveIfBetter({ updates: 1, meanReturn: Infinity })).rejects.toMatchObject({
      code: "INVALID_STATE",
      message: expect.stringContaining("meanReturn is Infinity") as string,
    });
    await best.saveIfBetter({ updates: 1, meanReturn: 0.5 });
    await writeFile(join(checkpoints, "best-000001", "evaluation.json"), '{"updates": 1, "meanReturn": null}');
    await expect(best.load()).rejects.toMatchObject({ code: "FILE_CORRUPT" });
    expect((await readdir(checkpoints)).filter((name) => name.includes("partial"))).toEqual([]);
  });
});

describe("a checkpoint", () => {
  it.each([Infinity, Number.NaN])("is not written with a state of an environment that contains %d", async (value) => {
    vi.spyOn(CountingEnv.prototype, "getState").mockImplementationOnce(
      () => ({ random: {}, state: { best: [1, value] } }) as never,
    );
    const { trainer } = await runs.setUp({ checkpointDir: checkpoints });
    await trainer.resume();
    await expect(trainer.train()).rejects.toMatchObject({
      code: "ENV_INVALID",
      message: expect.stringContaining(`state.best[1] is ${value}, and JSON`) as string,
    });
    vi.restoreAllMocks();
    expect(await readdir(checkpoints)).toEqual(["000002", "000003"]);
  });

  it("is not written with parameters that are not finite", async () => {
    const { trainer, model } = await runs.setUp({ checkpointDir: checkpoints, saveSteps: 1 });
    await trainer.resume();
    const { runtime, parameters } = model.causalLM;
    const onUpdate = async () => {
      const values = (await runtime.read(parameters.values)).data as Float32Array;
      values[3] = Number.NaN;
      await runtime.write(parameters.values, values);
    };
    await expect(trainer.train({ onUpdate })).rejects.toMatchObject({
      code: "TRAINING_DIVERGED",
      message: expect.stringMatching(/its parameter .* contains NaN/) as string,
    });
    expect(await readdir(checkpoints)).toEqual(["000002", "000003"]);
  });
});
