import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { choiceEnvSource } from "./support/choice-env.js";
import { runCommand } from "./support/command.js";

const bin = fileURLToPath(new URL("../dist/app/cli/bin.js", import.meta.url));

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "run-folders-"));
  const lines = [{ prompt: "14 or 20?", completion: "stay" }];
  await writeFile(join(folder, "data.jsonl"), lines.map((line) => JSON.stringify(line)).join("\n"));
  await writeFile(join(folder, "stuck.js"), STUCK_ENV);
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await writeFile(join(folder, "stuck-algorithm.js"), STUCK_ALGORITHM);
});
afterAll(async () => rm(folder, { recursive: true }));

const STUCK_ENV = choiceEnvSource("Stuck", {
  reset: "return { observation: 0, info: {} };",
  step: "return new Promise(() => {});",
});

const STUCK_ALGORITHM = `
import { defineAlgorithm, settings } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
const count = (value) => settings.integer({ default: value, min: 1, description: "Turns." });
const rate = settings.number({ default: 1e-3, above: 0, description: "Learning rate." });
export default defineAlgorithm({
  name: "stuck",
  settings: { batchSize: count(16), learningRate: rate },
  rollout: ({ batchSize }) => ({ kind: "turns", turns: batchSize }),
  advantages: () => new Promise(() => {}),
  loss: ({ logProbs }) => ({ loss: logProbs }),
});
`;

const settings = (turns: number) =>
  `--turns ${turns} --batch-size 16 --num-envs 4 --save-steps 1 --action-mode choices --sft-warm-start none --device cpu --threads 1`.split(
    " ",
  );
const train = (name: string, turns = 48) => ["train", "blackjack", ...settings(turns), "--output", join(folder, name)];
const isTraining = (name: string) => existsSync(join(folder, name, "checkpoints", "000001"));

/**
 * Starts a command, and resolves once a condition holds; `ended` has its status and standard error.
 */
async function start(args: readonly string[], until: () => boolean) {
  const child = spawn(process.execPath, [bin, ...args], { stdio: ["ignore", "ignore", "pipe"] });
  let err = "";
  child.stderr.on("data", (data) => (err += String(data)));
  const ended = new Promise<{ status: number | null; err: string }>((done) =>
    child.once("close", (status) => done({ status, err })),
  );
  while (!until() && child.exitCode === null) await sleep(20);
  return { child, ended };
}

describe("a run folder", { timeout: 120_000 }, () => {
  it("belongs to one process, and to the next one after a kill", async () => {
    const first = await start(train("shared", 10_000_000), () => isTraining("shared"));
    const resumed = await runCommand(["train", "--resume", join(folder, "shared")]);
    expect(resumed).toMatchObject({
      status: 1,
      err: expect.stringMatching(/FOLDER_IN_USE.*in use by process \d+ on .* since/) as string,
    });
    first.child.kill("SIGKILL");
    await first.ended;
    expect(await readdir(join(folder, "shared"))).toContain(".lock");
    const { status } = await runCommand(["train", "--resume", join(folder, "shared"), "--turns", "16"]);
    expect(status).toBe(0);
    expect(await readdir(join(folder, "shared"))).not.toContain(".lock");
  });

  it("of two processes that start a run, goes to one", async () => {
    const pair = await Promise.all([1, 2].map(async () => runCommand(train("pair"))));
    const [winner, loser] = pair.toSorted((a, b) => Number(a.status) - Number(b.status));
    expect(winner.status).toBe(0);
    expect(loser).toMatchObject({
      status: 1,
      err: expect.stringMatching(/in use by|already contains a run/) as string,
    });
  });

  it.each([
    ["train", (output: string) => [...train("unused", 10_000_000).slice(0, -1), output]],
    [
      "sft",
      (output: string) => [
        "sft",
        "-d",
        join(folder, "data.jsonl"),
        "--max-steps",
        "1000000",
        "--save-steps",
        "1",
        "-o",
        output,
      ],
    ],
  ])("that was deleted or moved ends %s with an error", async (name, createArgs) => {
    for (const change of ["deleted", "moved"]) {
      const target = `${name}-${change}`;
      const path = join(folder, target);
      const { ended } = await start(createArgs(path), () => isTraining(target));
      if (change === "moved") await rename(path, `${path}-away`);
      else while (existsSync(path)) await rm(path, { recursive: true, force: true }).catch(() => {});
      const { status, err } = await ended;
      expect(err).toMatch(/was deleted, moved or replaced/);
      expect(status).toBe(1);
    }
  });
});

describe("processes that are killed", { timeout: 300_000 }, () => {
  it("leave nothing behind that the next one does not finish to the same result", async () => {
    const script = fileURLToPath(new URL("../scripts/kill-table.mjs", import.meta.url));
    const child = spawn(process.execPath, [script, "--kills", "9", "--pairs", "1"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    child.stdout.on("data", (data) => (out += String(data)));
    const status = await new Promise((done) => child.once("close", done));
    expect(out).toMatch(/worker +1 .*\npairs of train +1 +1\n$/);
    expect(status).toBe(0);
  });
});

describe("a command that waits for a promise that never settles", { timeout: 60_000 }, () => {
  it("says what it waited for and how to resume", async () => {
    const output = join(folder, "waiting");
    const args = ["train", "blackjack", "--algorithm", "./stuck-algorithm.js", ...settings(48), "--output", output];
    const { status, err } = await runCommand(args, { cwd: folder });
    expect(err).toMatch(
      /waiting for the update of update 1, which never completed.*There is no checkpoint\.\nllamagym/,
    );
    expect(err).toMatch(/llamagym train ended before it was complete.*Resume with: .*train --resume .*waiting\n$/);
    expect(status).toBe(13);
    expect(existsSync(join(output, ".lock"))).toBe(false);
  });

  it("says what it waited for in a program that uses the library", () => {
    const runs = new URL("../dist/runs.js", import.meta.url).href;
    const program = `
      import { startRun } from ${JSON.stringify(runs)};
      const options = { env: "Blackjack-v1", turns: 48, batchSize: 16, numEnvs: 4, actionMode: "choices", device: "cpu" };
      void (async () => {
        const run = await startRun(options, "library");
        await run.train({ onUpdate: () => new Promise(() => {}) });
      })();`;
    const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { cwd: folder });
    expect(String(stderr)).toMatch(/waiting for the logging of update 1/);
    expect(status).toBe(13);
  });

  it("says so in a command without a run", async () => {
    await writeFile(join(folder, "never.js"), "await new Promise(() => {});");
    const demos = await runCommand(["demos", "never.js", "--policy", "random"], { cwd: folder });
    expect(demos).toMatchObject({ status: 13, err: expect.stringContaining("llamagym demos ended before") as string });
  });

  it("fails if code that it runs ends the process", async () => {
    await writeFile(join(folder, "exits.js"), "process.exit(0);");
    const { status, err } = await runCommand(["envs", "./exits.js"], { cwd: folder });
    expect(err).toContain("llamagym envs ended before it was complete: code that it ran");
    expect(status).toBe(1);
  });

  it("fails after the time limit of a call", async () => {
    const args = ["train", "stuck.js", ...settings(48), "--call-timeout-seconds", "0.2", "--output", "limited"];
    const { status, err } = await runCommand(args, { cwd: folder });
    expect(err).toMatch(/ENV_FAILED.*0\.2/);
    expect(status).toBe(1);
  });
});

describe("llamagym sft --resume", { timeout: 60_000 }, () => {
  it("keeps its settings, finds moved data and refuses changed data", async () => {
    const run = join(folder, "sft-run");
    const data = join(folder, "own.jsonl");
    await writeFile(data, '{"prompt": "a", "completion": "b"}\n');
    const sft = async (...args: string[]) => runCommand(["sft", ...args]);
    expect((await sft("-d", data, "--max-steps", "2", "-o", run)).status).toBe(0);
    for (const option of ["--learning-rate", "--batch-size", "--seed", "--max-steps"]) {
      const refused = await sft("--resume", run, option, "1");
      expect(refused).toMatchObject({ status: 2, err: expect.stringContaining(`keeps its ${option}.`) as string });
    }
    const moved = join(folder, "moved.jsonl");
    await rename(data, moved);
    expect((await sft("--resume", run)).err).toMatch(/FILE_NOT_FOUND.*own\.jsonl.*--data FILE/);
    expect((await sft("--resume", run, "--data", moved)).status).toBe(0);
    await writeFile(moved, '{"prompt": "a", "completion": "c"}\n');
    expect((await sft("--resume", run)).err).toMatch(/RUN_INCOMPATIBLE.*moved\.jsonl has changed/);
  });
});
