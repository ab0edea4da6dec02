import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const folder = new URL("clients/", import.meta.url);
const command = fileURLToPath(new URL("../dist/app/cli/bin.js", import.meta.url));
const isInstalled = existsSync(new URL("node_modules/.package-lock.json", folder)) || process.env.CI !== undefined;
const note = isInstalled ? "" : ": not tried, run `node test/clients/run.mjs --install` first";

it.skipIf(!isInstalled)(`serves real clients from npm${note}`, { timeout: 180_000 }, async () => {
  const server = spawn(process.execPath, [command, "serve", "--model", "embedded", "--port", "0"]);
  try {
    const [line] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
    expect(line).toMatch(/^Serving embedded at http:\/\/127\.0\.0\.1:\d+\/v1$/);
    const url = line.replace(/.* at (.*)\/v1$/, "$1");
    const env = { ...process.env, LLAMAGYM_TEST_URL: url };
    const running = promisify(execFile)(process.execPath, [fileURLToPath(new URL("run.mjs", folder))], { env });
    const { stdout } = await running.catch((error: { stdout: string }) => error);
    expect(stdout).toMatch(/\bfail 0\b/);
    // Cancelled requests do not run on.
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/^llamagym_requests_running 0$/m);
  } finally {
    server.kill("SIGINT");
    await once(server, "exit");
  }
});

it.skipIf(!isInstalled)(`trains the agents of examples/agents${note}`, { timeout: 600_000 }, async () => {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const compileAndRun = [process.execPath, `${root}examples/run.mjs`, "ai-sdk-agent"];
  const run = [
    "npm",
    "exec",
    "--offline",
    "--yes",
    "--package=node@24",
    "--",
    "node",
    "examples/agents/.build/langchain-agent.js",
  ];
  for (const [command, processes] of [
    [compileAndRun, "0"],
    [run, "2"],
  ] as const) {
    const [file, ...args] = [...command, "--episodes", "40", "--eval-episodes", "10", "--processes", processes];
    const { stdout } = await promisify(execFile)(file, args, { cwd: root });
    expect(stdout).toMatch(/^greedy mean return -?\d\.\d{3} ± /m);
    expect(stdout).toMatch(/^\d+ hands, \d+ updates\. Saved the adapter/m);
  }
  const [file, ...args] = [
    ...run.slice(0, -1),
    "examples/agents/.build/shop-agent.js",
    "--turns",
    "64",
    "--examples",
    "2",
  ];
  const { stdout } = await promisify(execFile)(file, [...args, "--eval-episodes", "4"], { cwd: root });
  expect(stdout).toMatch(/^after PPO: \d\.\d{3} ± /m);
});
