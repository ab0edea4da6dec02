import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { InteractiveEpisode } from "../src/app/cli/interactive/interactive-episode.js";
import { Reporter } from "../src/app/cli/reporter.js";
import { Discrete, Env } from "../src/envs.js";
import { serveEnv, type EnvServer } from "../src/envs/bridges/index.js";
import { runCommand } from "./support/command.js";

const ESC = String.fromCodePoint(0x1b);
/**
 * What a hostile text does: clears the screen, sets the title, rings, overwrites its line, reverses
 * text.
 */
const HOSTILE = `${ESC}[2J${ESC}]0;owned${String.fromCodePoint(7)}real\rfake${String.fromCodePoint(0x9b)}1m${String.fromCodePoint(0x202e)}`;
const SHOWN = "\\x1b[2J\\x1b]0;owned\\x07real\\x0dfake\\u009b1m\\u202e";
const CONTROLS = /(?![\n\t])[\p{Cc}\u202A-\u202E\u2066-\u2069]/u;

class HostileEnv extends Env<number, number> {
  readonly observationSpace = new Discrete(1);
  readonly actionSpace = new Discrete(2);
  override readonly text = {
    systemPrompt: HOSTILE,
    formatObservation: () => HOSTILE,
    parseAction: (text: string) => (text === "go" ? 0 : undefined),
    formatAction: () => "go",
    choices: () => ["go", HOSTILE],
  };

  override reset() {
    return { observation: 0, info: {} };
  }

  override step() {
    return { observation: 0, reward: 1, terminated: true, truncated: false, info: {} };
  }
}

let server: EnvServer;
let folder: string;
beforeAll(async () => {
  server = await serveEnv(() => new HostileEnv(), { port: 0 });
  folder = await mkdtemp(join(tmpdir(), "terminal-"));
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

describe("text of others", () => {
  it.each([
    ["the description of a remote environment", ["envs", "openenv:"]],
    ["an episode in a remote environment", ["play", "openenv:"]],
  ])("is shown with escapes: %s", async (_, [command, env]) => {
    const { out, err } = await runCommand([command, env + server.url], { input: "go\n/actions\n/quit\n" });
    expect(out).toContain(SHOWN);
    expect(out + err).not.toMatch(CONTROLS);
  });

  it("is valid JSON where JSON was requested", async () => {
    const { out } = await runCommand(["envs", `openenv:${server.url}`, "--json"]);
    expect(out).not.toMatch(CONTROLS);
    expect(JSON.parse(out)).toMatchObject({ systemPrompt: expect.stringContaining(HOSTILE) as string });
  });

  it("is shown with escapes: errors of a server", async () => {
    const failing = createServer((_request, response) => response.writeHead(500).end(HOSTILE)).listen(0);
    const { port } = failing.address() as AddressInfo;
    const { status, err } = await runCommand(["play", `http://127.0.0.1:${port}`]);
    failing.close();
    expect(status).toBe(1);
    expect(err).not.toMatch(CONTROLS);
  });

  it("is shown with escapes: names of files, options and commands, and settings of a run", async () => {
    await mkdir(join(folder, "run"));
    await writeFile(join(folder, "run", "config.json"), JSON.stringify({ version: HOSTILE, model: HOSTILE }));
    for (const args of [
      [HOSTILE],
      ["play", HOSTILE],
      ["envs", `--${HOSTILE}`],
      ["train", "--resume", join(folder, "run")],
    ]) {
      const { out, err } = await runCommand(args);
      expect(err).toMatch(/\\x1b|\\u001b/);
      expect(out + err).not.toMatch(CONTROLS);
    }
  });
});

/** Returns what is written to standard output, as a terminal or another program receives it. */
async function captureStdout(isTerminal: boolean, run: () => unknown): Promise<string> {
  const { stdout } = process;
  const { isTTY } = stdout;
  const write = vi.spyOn(stdout, "write").mockReturnValue(true);
  try {
    stdout.isTTY = isTerminal;
    await run();
    return write.mock.calls.map(([text]) => String(text)).join("");
  } finally {
    stdout.isTTY = isTTY;
    write.mockRestore();
  }
}

it("a rendering keeps its colors and nothing else", async () => {
  const env = new HostileEnv();
  Object.assign(env, { metadata: { renderModes: ["ansi"] }, render: () => `${ESC}[41mS${ESC}[0m${HOSTILE}` });
  const out = await captureStdout(true, async () => {
    const reporter = new Reporter();
    const print = (text: string) => reporter.print(text);
    const printRendering = (text: string) => reporter.printRendering(text);
    await new InteractiveEpisode(env, { showText: false, print, printRendering }).reset();
  });
  expect(out).toBe(`${ESC}[41mS${ESC}[0m${SHOWN}${ESC}[0m\n`);
});

describe("a completion", () => {
  it.each([
    [true, SHOWN],
    [false, HOSTILE],
  ])("on standard output that is a terminal (%s)", async (isTerminal, shown) => {
    expect(await captureStdout(isTerminal, () => new Reporter().writeCompletion(HOSTILE))).toBe(shown);
  });
});

it("nothing but the reporter and the progress line writes to standard output and error", async () => {
  const root = fileURLToPath(new URL("../src", import.meta.url));
  const names = (await readdir(root, { recursive: true })).filter((name) => /(?<!\.test)\.ts$/.test(name));
  const writers: string[] = [];
  for (const name of names)
    if (/\b(stdout|stderr)\.write\(|out = process\.std/.test(await readFile(join(root, name), "utf8")))
      writers.push(name.replaceAll("\\", "/"));
  expect(writers.sort()).toEqual([
    // Its own text, before other modules can be loaded.
    "app/cli/bin.ts",
    // A process whose output another process of the package reads.
    "app/cli/probe-device.ts",
    "app/cli/reporter.ts",
    "app/tracking/progress/progress-line.ts",
  ]);
});
