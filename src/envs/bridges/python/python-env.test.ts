import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { checkEnv, make } from "../../../envs.js";
import { openEnv } from "../../registry/open-env.js";
import "../register-openers.js";
import { PythonEnv, type PythonEnvOptions } from "./python-env.js";

/** A script with the protocol of the Python bridge, so that these tests need no Python. */
const fixtures = fileURLToPath(new URL("../../../../test/fixtures/envs/", import.meta.url));
const fake = `${fixtures}fake-python.sh`;
/** A Python with gymnasium, if available. */
const real = [process.env.LLAMAGYM_TEST_PYTHON, "bench/peers/.venv/bin/python", "python3"].find(
  (python) => python !== undefined && spawnSync(python, ["-c", "import gymnasium"]).status === 0,
);

const opened: PythonEnv[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((env) => env.close()));
});

async function open(id: string, options: PythonEnvOptions = {}): Promise<PythonEnv> {
  const env = await PythonEnv.open(id, { python: fake, ...options });
  opened.push(env);
  return env;
}

describe.skipIf(process.platform === "win32")("the bridge's protocol", () => {
  it("returns spaces, observations, rewards and ends, with infinite numbers", async () => {
    const env = await open("counts", { renderMode: "rgb_array" });
    expect(env.actionSpace.toString()).toBe("Discrete(3, start=1)");
    expect(env.metadata).toEqual({ renderModes: ["rgb_array"], renderFps: 5 });
    const { observation, info } = await env.reset({ seed: 2n ** 70n, options: { level: 4 } });
    // 7 is out of the space's bounds, which Gymnasium lets pass.
    expect(observation).toEqual({ count: 0, box: Float32Array.of(Infinity, 7) });
    expect(info).toEqual({ seed: String(2n ** 70n), options: { level: 4 } });
    expect(await env.step(2)).toMatchObject({ reward: Infinity, terminated: false, info: { action: 2 } });
    expect(await env.render("rgb_array")).toEqual({ width: 1, height: 1, data: Uint8Array.of(1, 2, 3) });
    await env.step(3);
    expect(await env.step(3)).toMatchObject({ reward: 3, terminated: true, observation: { count: 3 } });
    await expect(env.step(3)).rejects.toMatchObject({ code: "ENV_NOT_RESET" });
  });

  it("parses actions by name or by number", async () => {
    const env = await open("counts", { actionNames: ["left", "stay", "right"] });
    expect(env.text?.parseAction("I go right")).toBe(3);
    expect(env.text?.formatAction(1)).toBe("left");
    expect((await open("counts")).text?.parseAction("3")).toBe(3);
    await expect(open("counts", { actionNames: ["left"] })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  it.each([
    ["dies", {}, /ended with status 3\. The end of its standard error: segmentation fault at 0x0/],
    ["silent", { timeout: 1500 }, /did not answer step within 1500 ms/],
    ["garbage", {}, /sent an invalid reply: loading assets\.\.\./],
    ["raises", {}, /failed in step: RangeError: the motor is stuck/],
    ["other-shape", {}, /returned an observation that does not match its space: \[1,2,3\] is not of Dict/],
    ["no-reward", {}, /replied to a step without a number for `reward`/],
  ])("reports the failure of a process: %s", async (id, options, message) => {
    const env = await open(id, options);
    await env.reset();
    await expect(env.step(1)).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringMatching(message) as string,
    });
    // After an exception the environment works again; other failures are final.
    const alive = !["dies", "silent", "garbage"].includes(id);
    const again = await env.reset().then(
      () => "alive",
      (error: unknown) => String(error),
    );
    expect(again).toMatch(alive ? /^alive$/ : message);
  });

  it.each([
    ["other-version", {}, /uses protocol 7, but this client uses 1/],
    ["no-gymnasium", {}, /Install it \(.* -m pip install gymnasium\)/],
    ["counts", { python: "./no-such-python" }, /could not be started .* ENOENT\. Install Python/],
  ])("is refused at the start: %s %j", async (id, options, message) => {
    await expect(open(id, options)).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringMatching(message) as string,
    });
  });

  it("rejects invalid timeouts, and actions outside the space", async () => {
    await expect(open("counts", { timeout: 0 })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    const env = await open("counts");
    await expect(env.step(1)).rejects.toMatchObject({ code: "ENV_NOT_RESET" });
    await env.reset();
    await expect(env.step(0)).rejects.toMatchObject({ code: "ENV_ACTION_INVALID" });
  });

  it("fails the pending call and every later one when it is closed", async () => {
    const env = await open("silent");
    await env.reset();
    const step = env.step(1).catch((error: unknown) => String(error));
    await new Promise((resolve) => setTimeout(resolve, 20));
    await env.close();
    expect(await step).toMatch(/was closed/);
    await env.close();
    await expect(env.reset()).rejects.toThrow(/was closed/);
  });
});

describe.skipIf(real === undefined)("Python's Gymnasium (skipped without a Python that has it)", () => {
  const options = { python: real };

  it("equals the built-in CartPole, and passes checkEnv", async () => {
    const theirs = await open("CartPole-v1", options);
    const ours = make("CartPole-v1");
    expect(await theirs.reset({ seed: 5 })).toEqual(await ours.reset({ seed: 5 }));
    for (const action of [1, 0, 1, 1, 0]) expect(await theirs.step(action)).toEqual(await ours.step(action));
    const { warnings } = await checkEnv(theirs);
    expect(warnings.filter((warning) => !/bound|cannot be saved/.test(warning))).toEqual([]);
  });

  it("is opened by an id, with options of the environment and a step limit", async () => {
    const env = await openEnv("python:FrozenLake-v1", {
      ...options,
      options: { is_slippery: false },
      maxEpisodeSteps: 2,
    });
    await env.reset({ seed: 1 });
    expect(await env.step(2)).toMatchObject({ observation: 1, truncated: false });
    expect(await env.step(2)).toMatchObject({ observation: 2, truncated: true });
    await env.close();
  });

  describe("with spaces and infos that JSON does not know", () => {
    const odd = { ...options, modules: ["odd_envs"], environment: { PYTHONPATH: fixtures } };
    const kinds = ["flags", "int64", "uint64", "boxs", "discretes", "dicts", "tuples"];

    it.each([...kinds, ...kinds.slice(3).map((kind) => `stacked-${kind}`)])(
      "observes what it did: %s",
      async (kind) => {
        const env = await open("Echo-v0", { ...odd, options: { kind } });
        await env.reset({ seed: 1 });
        env.actionSpace.seed(1);
        for (let i = 0; i < 10; i++) {
          const action = env.actionSpace.sample();
          expect((await env.step(action)).observation).toEqual(action);
        }
      },
    );

    it("reads infos as JSON, and as text what JSON cannot say", async () => {
      const env = await open("Echo-v0", odd);
      expect((await env.reset({ seed: 1 })).info).toEqual({
        bytes: "b'abc'",
        date: "2026-01-02",
        nanosecond: "1970-01-01T00:00:00.000000001",
        span: "5 nanoseconds",
        unprintable: "<Unprintable>",
        frozen: [1],
        dates: ["2026-01-02"],
        today: "2026-01-02",
        complex: "(1+2j)",
        long: 0.5,
        infinite: "Infinity",
        huge: String(2n ** 60n),
        flag: true,
        objects: [1, "a", null],
        set: [1],
        3: 0.5,
      });
    });

    it("reads an array of one reward, and refuses several by name", async () => {
      const one = await open("Reward-v0", { ...odd, options: { rewards: [1.5] } });
      await one.reset({ seed: 1 });
      expect((await one.step(one.actionSpace.sample())).reward).toBe(1.5);
      const several = await open("Reward-v0", { ...odd, options: { rewards: [1, 2] } });
      await several.reset({ seed: 1 });
      await expect(several.step(several.actionSpace.sample())).rejects.toThrow("[1 2] is not one number");
    });

    it("names what the methods of an environment of old Gym must return", async () => {
      const env = await open("Old-v0", odd);
      await env.reset({ seed: 1 });
      await expect(env.step(env.actionSpace.sample())).rejects.toThrow(
        "step() must return (observation, reward, terminated, truncated, info), but returned 4 values.",
      );
      const older = await open("Old-v0", { ...odd, options: { returns_info: false } });
      await expect(older.reset({ seed: 1 })).rejects.toThrow(
        "reset() must return (observation, info), but returned a ndarray.",
      );
    });

    it("survives infos that contain themselves, environments that read input, and those that exit", async () => {
      const env = await open("Stubborn-v0", { ...odd, options: { kind: "input" } });
      await env.reset({ seed: 1 });
      const { info } = await env.step(env.actionSpace.sample());
      expect(info).toEqual({ line: "", child: "b''", itself: ["<dict>"] });
      const exiting = await open("Stubborn-v0", { ...odd, options: { kind: "exit" } });
      await exiting.reset({ seed: 1 });
      await expect(exiting.step(exiting.actionSpace.sample())).rejects.toThrow("failed in step: SystemExit: no more");
      await exiting.reset({ seed: 2 });
    });

    it("refuses an observation that doubles cannot hold, and continues", async () => {
      const env = await open("Huge-v0", odd);
      await env.reset({ seed: 1 });
      await expect(env.step(env.actionSpace.sample())).rejects.toThrow(/integer 1152921504606846977 is beyond 2\^53/);
      await env.reset({ seed: 1 });
    });
  });

  it("reports Gymnasium's error for an unknown id", async () => {
    await expect(open("Nowhere-v0", options)).rejects.toThrow(/NameNotFound: Environment `Nowhere` doesn't exist/);
  });
});
