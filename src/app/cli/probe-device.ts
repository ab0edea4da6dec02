import { add, compile, input } from "../../engine/graph/index.js";
import { type Device, Runtime } from "../../engine/runtime/index.js";
import { tensor } from "../../engine/tensor/index.js";

/**
 * Adds two tensors on a device and returns "ok" or the failure. Runs in its own process, because
 * graphics drivers write to standard error and may crash.
 */
async function probeDevice(device: Device): Promise<string> {
  try {
    const runtime = new Runtime({ device, threads: 1 });
    const x = input("x", "float32", [2]);
    const session = await runtime.createSession(compile({ sum: add(x, x) }));
    const { sum } = await session.run({ x: tensor("float32", [2], Float32Array.of(1, 2)) });
    await runtime.close();
    return sum.data[1] === 4 ? "ok" : `1 + 1 and 2 + 2 gave ${sum.data.join(", ")}.`;
  } catch (error) {
    return (error as Error).message;
  }
}

process.stdout.write(await probeDevice(process.argv[2] as Device));
process.exit(0);
