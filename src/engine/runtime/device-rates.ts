import { createHash, fs, system } from "#platform";
import { z } from "zod";
import { getCacheFolder } from "../../core/files/cache-folder.js";
import { writeFileAtomic } from "../../core/files/write-file-atomic.js";
import { compile, input, matmul, mul, reduceSum } from "../graph/index.js";
import { type ChosenDevice, type DeviceRates, isSoftwareAdapter } from "./device.js";
import { Runtime } from "./runtime.js";

/** Rows and columns of the matrices that are multiplied. */
const SIZE = 1024;
const PRODUCTS = 8;
const RUNS = 2;
/** After this time, drivers may be different ones. */
const MAX_AGE_MS = 7 * 24 * 60 * 60 * 1000;

const ratesSchema = z.object({
  /** Machine and settings that were measured. */
  key: z.string(),
  time: z.number(),
  cpu: z.number(),
  webgpu: z.number(),
});

let measured: { readonly key: string; readonly rates: Promise<DeviceRates> } | undefined;

/** Returns the rates of this machine's devices: kept ones, or measured ones. */
export function findDeviceRates(threads: number, refresh: boolean): Promise<DeviceRates> {
  const { VK_ICD_FILENAMES, VK_DRIVER_FILES } = system.env;
  const key = JSON.stringify([system.hostname, system.os, system.arch, threads, VK_ICD_FILENAMES, VK_DRIVER_FILES]);
  if (measured?.key !== key || refresh) measured = { key, rates: findRates(key, threads, refresh) };
  return measured.rates;
}

async function findRates(key: string, threads: number, refresh: boolean): Promise<DeviceRates> {
  const path = fs.join(getCacheFolder(), "devices", `${createHash("sha256").update(key).hex().slice(0, 16)}.json`);
  const kept = refresh ? undefined : await readRates(path);
  if (kept?.key === key && Math.abs(Date.now() - kept.time) < MAX_AGE_MS) return kept;
  const cpu = await measureProducts("cpu", threads);
  // A GPU whose driver ends the process is not opened again.
  await keepRates(path, key, { cpu, webgpu: 0 });
  const rates = { cpu, webgpu: await measureProducts("webgpu", threads) };
  await keepRates(path, key, rates);
  return rates;
}

async function keepRates(path: string, key: string, rates: DeviceRates): Promise<void> {
  try {
    await fs.makeFolder(fs.dirname(path));
    await writeFileAtomic(path, JSON.stringify({ key, time: Date.now(), ...rates }));
  } catch {
    // Without a cache, they are measured at each start.
  }
}

async function readRates(path: string): Promise<z.infer<typeof ratesSchema> | undefined> {
  try {
    return ratesSchema.parse(JSON.parse(await fs.readText(path)));
  } catch {
    return undefined;
  }
}

/** Returns GFLOP/s of products of matrices that are on the device; 0 if it cannot be used. */
async function measureProducts(device: ChosenDevice, threads: number): Promise<number> {
  const runtime = new Runtime({ device, threads });
  try {
    if (device === "webgpu" && isSoftwareAdapter((await runtime.getGpuReport()).adapter)) return 0;
    const [a, b] = ["a", "b"].map((name) => input(name, "float32", [SIZE, SIZE]));
    const product = Array.from({ length: PRODUCTS }).reduce<typeof a>((x) => mul(matmul(x, b), 0.5), a);
    const session = await runtime.createSession(compile({ sum: reduceSum(product) }));
    const feeds = { a: runtime.allocate("float32", [SIZE, SIZE]), b: runtime.allocate("float32", [SIZE, SIZE]) };
    // The first run compiles kernels.
    await session.run(feeds);
    const since = performance.now();
    for (let run = 0; run < RUNS; run++) await session.run(feeds);
    return (2 * RUNS * PRODUCTS * SIZE ** 3) / (performance.now() - since) / 1e6;
  } catch (error) {
    if (device === "cpu") throw error;
    return 0;
  } finally {
    await runtime.close();
  }
}
