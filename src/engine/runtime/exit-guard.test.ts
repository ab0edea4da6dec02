import { spawn } from "node:child_process";
import { describe, expect, it } from "vitest";

const dist = new URL("../../../dist/engine/runtime/", import.meta.url);

/** Ends the process in the middle of a large product. */
const exitWhileComputing = `
  import { compile, input, matmul, Runtime, tensor } from "llamagym/engine";
  const runtime = new Runtime({ device: "cpu", threads: 1 });
  const size = 1500;
  const square = input("x", "float32", [size, size]);
  const session = await runtime.createSession(compile({ y: matmul(square, square) }));
  const x = tensor("float32", [size, size], new Float32Array(size * size));
  for (let i = 0; i < 4; i++) void session.run({ x });
  setTimeout(() => process.exit(7), 30);
`;

/**
 * Ends the process while its worker loads its modules; an exit handler tells if they were loaded
 * before.
 */
const exitWhileLoading = `
  import { Worker } from "node:worker_threads";
  import { createExitGuard, waitAtExit } from "${new URL("exit-guard.js", dist).href}";
  const loaded = new Int32Array(new SharedArrayBuffer(4));
  const guard = createExitGuard();
  waitAtExit(guard);
  process.on("exit", () => (process.exitCode = Atomics.load(loaded, 0)));
  const code = \`
    const { workerData } = require("node:worker_threads");
    const loading = import("${new URL("serve-requests.js", dist).href}");
    Atomics.wait(workerData.loaded, 0, 0, 300);
    loading.then(({ serveRequests }) => {
      Atomics.store(workerData.loaded, 0, 7);
      serveRequests({ data: workerData.guard, onStart: (handle) => handle(workerData.guard), post() {}, onMessage() {} });
    });
  \`;
  new Worker(code, { eval: true, execArgv: [], workerData: { guard, loaded } }).on("online", () => process.exit());
`;

async function runScript(script: string): Promise<{ status: number | string; errors: string }> {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const status = await new Promise<number | string>((resolve) =>
    child.once("close", (code, signal) => resolve(signal ?? code!)),
  );
  return { status, errors };
}

describe("a process that exits keeps its status", () => {
  it("while the worker computes", async () => {
    expect(await runScript(exitWhileComputing)).toEqual({ status: 7, errors: "" });
  });

  it("while the worker loads ONNX Runtime", async () => {
    expect(await runScript(exitWhileLoading)).toEqual({ status: 7, errors: "" });
  });
});
