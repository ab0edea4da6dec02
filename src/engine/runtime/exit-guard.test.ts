import { spawn } from "node:child_process";
import { expect, it } from "vitest";

/** Ends the process in the middle of a large product. */
const script = `
  import { compile, input, matmul, Runtime, tensor } from "llamagym/engine";
  const runtime = new Runtime({ device: "cpu", threads: 1 });
  const size = 1500;
  const square = input("x", "float32", [size, size]);
  const session = await runtime.createSession(compile({ y: matmul(square, square) }));
  const x = tensor("float32", [size, size], new Float32Array(size * size));
  for (let i = 0; i < 4; i++) void session.run({ x });
  setTimeout(() => process.exit(7), 30);
`;

it("preserves the exit status of a process that exits while the worker computes", async () => {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const status = await new Promise((resolve) => child.once("close", (code, signal) => resolve(signal ?? code)));
  expect({ status, errors }).toEqual({ status: 7, errors: "" });
});
