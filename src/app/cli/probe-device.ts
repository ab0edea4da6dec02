import { add, compile, input } from "../../engine/graph/index.js";
import { type Device, type DeviceRates, getDeviceRates, type GpuReport, Runtime } from "../../engine/runtime/index.js";
import { tensor } from "../../engine/tensor/index.js";

/** Outcome of a test of a device: a failure, or success with what is known of a GPU. */
export interface DeviceProbe {
  readonly failure?: string;
  readonly gpu?: GpuReport;
  /** What "auto" compares, measured again. */
  readonly rates?: DeviceRates;
}

/**
 * Adds two tensors on a device. Runs in its own process, because graphics drivers write to standard
 * error and may crash.
 */
async function probeDevice(device: Device): Promise<DeviceProbe> {
  try {
    const runtime = new Runtime({ device, threads: 1 });
    const x = input("x", "float32", [2]);
    const session = await runtime.createSession(compile({ sum: add(x, x) }));
    const { sum } = await session.run({ x: tensor("float32", [2], Float32Array.of(1, 2)) });
    const gpu = device === "webgpu" ? await runtime.getGpuReport() : undefined;
    await runtime.close();
    if (sum.data[1] !== 4) return { failure: `1 + 1 and 2 + 2 gave ${sum.data.join(", ")}.` };
    return gpu === undefined ? {} : { gpu, rates: await getDeviceRates({ refresh: true }) };
  } catch (error) {
    return { failure: (error as Error).message };
  }
}

process.stdout.write(JSON.stringify(await probeDevice(process.argv[2] as Device)));
process.exit(0);
