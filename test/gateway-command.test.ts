import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeChunk, parseRolloutLine } from "../src/rl/tracking/rollouts/chunk.js";
import { runCommand, runInHost } from "./support/command.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gateway-command-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function post(url: string, body: object): Promise<unknown> {
  const headers = { "content-type": "application/json" };
  return (await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/** Plays sessions of one turn until the gateway closes. */
async function playAll(url: string): Promise<void> {
  for (;;) {
    try {
      const { id, baseURL } = (await post(`${url}/sessions`, {})) as { id: string; baseURL: string };
      const messages = [{ role: "user", content: "hit or stay?" }];
      await post(`${baseURL}/chat/completions`, { model: "any", messages });
      await post(`${url}/sessions/${id}/end`, { reward: 1 });
    } catch {
      return;
    }
  }
}

/** Runs `llamagym gateway` with two agents that call it. */
async function runGateway(...args: string[]) {
  const agents: Promise<void>[] = [];
  let isStopped = false;
  const result = await runCommand(["gateway", "--port", "0", "--device", "cpu", "--threads", "1", ...args], {
    cwd: folder,
    onStdout: (out, kill) => {
      const [, url] = /^Gateway: (http:\S+)\n/m.exec(out) ?? [];
      if (url === undefined || agents.length > 0 || isStopped) return;
      isStopped = args.includes("stopped");
      // A second Ctrl-C would end it at once.
      if (isStopped) kill("SIGINT");
      else agents.push(playAll(url), playAll(url));
    },
  });
  await Promise.all(agents);
  return result;
}

const readMetrics = async () => (await readFile(join(folder, "run", "metrics.jsonl"), "utf8")).trim().split("\n");

describe("llamagym gateway", () => {
  it("trains on the sessions of other processes into a run folder, and resumes", async () => {
    const settings = ["--turns", "64", "--batch-size", "32", "--save-steps", "1"];
    const { status, out } = await runGateway("--output", "run", ...settings);
    expect(out).toMatch(
      /^Run folder: run\nTraining embedded through a gateway with ppo: 64 turns, updates of 32 turns/,
    );
    expect(out).toMatch(/^Open a session: curl http\S+\/sessions -H "content-type: application\/json" -d "{}"$/m);
    expect(out).toContain("Saved run/adapter.\nServe it: ");
    expect(status).toBe(0);
    expect(await readMetrics()).toHaveLength(2);
    const config: unknown = JSON.parse(await readFile(join(folder, "run", "config.json"), "utf8"));
    expect(config).toMatchObject({ env: "gateway", turns: 64, algorithm: "ppo" });
    expect(config).not.toHaveProperty("numEnvs");
    const [line] = (await readFile(join(folder, "run", "rollouts.jsonl"), "utf8")).split("\n");
    const { episodes } = await decodeChunk(parseRolloutLine(line)!);
    expect(episodes).toHaveLength(2);
    expect(episodes[0].turns[0]).toMatchObject({ observation: "hit or stay?", reward: 1, step: 1 });

    const resumed = await runGateway("--resume", "run", "--turns", "96");
    expect(resumed.out).toMatch(/^Resuming run from update 2\./);
    expect(resumed.status).toBe(0);
    expect(await readMetrics()).toHaveLength(3);
    const { err } = await runInHost(["train", "--resume", "run"], { cwd: folder });
    expect(err).toContain(
      "The run in run is not a run of llamagym train. Resume it with: llamagym gateway --resume run",
    );
  });

  it("stops at Ctrl-C while it waits for sessions, without an update to save", async () => {
    const { status, out } = await runGateway("--output", "stopped", "--algorithm", "grpo");
    expect(out).toMatch(/with grpo: 30,720 turns/);
    expect(out).toContain("Stopped before the first update. Start again with: ");
    expect(status).toBe(130);
  });

  it.each([
    [["--turns", "64", "--num-envs", "4"], 2, /num-envs/],
    [["--host", "0.0.0.0", "--turns", "64"], 1, /needs an API key/],
    [["--resume", "missing"], 1, /There is no run in missing/],
  ])("rejects %j in one line", async (args, status, message) => {
    const result = await runInHost(["gateway", ...args], { cwd: folder });
    expect(result.err.trim().split("\n")).toHaveLength(1);
    expect(result.err).toMatch(message);
    expect(result.status).toBe(status);
  });

  it("plays sessions of other processes greedily with --eval, without a run folder", async () => {
    const before = await readdir(folder);
    const { status, out } = await runGateway("--eval", "--episodes", "6");
    expect(out).toContain("Evaluating embedded, greedily, through a gateway: 6 sessions.");
    expect(out).toContain("6 sessions: greedy mean return 1 ± 0");
    expect(status).toBe(0);
    expect(await readdir(folder)).toEqual(before);
    const { err } = await runInHost(["gateway", "--eval", "--output", "run"], { cwd: folder });
    expect(err).toContain("--eval writes no run folder, so --output has no effect.");
  });
});
