import { createHash, fs, system } from "#platform";
import { z } from "zod";
import { getCacheFolder } from "../../core/files/cache-folder.js";
import { writeFileAtomic } from "../../core/files/write-file-atomic.js";
import { compile, input, matmul, mul, reduceSum } from "../graph/index.js";
import { type ChosenDevice, type DeviceRates, isSoftwareAdapter, listInstalledDevices } from "./device.js";
import { Runtime } from "./runtime.js";

/**
 * Parameters from which on a model gains by a GPU. The embedded model has 1 million: an NVIDIA H200
 * trains and samples it hardly faster than 16 cores.
 */
const MIN_PARAMETERS = 20e6;
/**
 * By how much a GPU must be faster than the CPU: its kernels are compiled at the first run, and
 * sampling waits for it at each token.
 */
const MIN_SPEEDUP = 2;

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

/**
 * Returns the device of "auto" for a model: the GPU if it is installed, multiplies matrices at
 * least twice as fast as the CPU, and the model is large enough to gain by it.
 *
 * @param parameters The model's number of parameters.
 * @param threads The CPU's threads per operation.
 */
export async function chooseDevice(parameters: number, threads?: number): Promise<ChosenDevice> {
  if (parameters < MIN_PARAMETERS || !listInstalledDevices().includes("webgpu")) return "cpu";
  return prefersGpu(await getDeviceRates({ threads })) ? "webgpu" : "cpu";
}

/** Whether the rates let "auto" use the GPU, for models that are large enough. */
export function prefersGpu({ cpu, webgpu }: DeviceRates): boolean {
  return webgpu >= MIN_SPEEDUP * cpu;
}

/**
 * Returns the rates of this machine's devices. They are measured once a week and kept in the cache
 * folder, so that runs on one machine choose one device; `refresh` measures them again.
 */
export function getDeviceRates({
  threads = system.countCores(),
  refresh = false,
}: { readonly threads?: number; readonly refresh?: boolean } = {}): Promise<DeviceRates> {
  const { VK_ICD_FILENAMES, VK_DRIVER_FILES } = system.env;
  const key = JSON.stringify([system.hostname, system.os, system.arch, threads, VK_ICD_FILENAMES, VK_DRIVER_FILES]);
  if (measured?.key !== key || refresh) measured = { key, rates: findRates(key, threads, refresh) };
  return measured.rates;
}

async function findRates(key: string, threads: number, refresh: boolean): Promise<DeviceRates> {
  const path = fs.join(getCacheFolder(), "devices", `${createHash("sha256").update(key).hex().slice(0, 16)}.json`);
  const kept = refresh ? undefined : await readRates(path);
  if (kept?.key === key && Math.abs(Date.now() - kept.time) < MAX_AGE_MS) return kept;
  const cpu = await measureDevice("cpu", threads);
  // A GPU whose driver ends the process is not opened again.
  await keepRates(path, key, { cpu, webgpu: 0 });
  const rates = { cpu, webgpu: await measureDevice("webgpu", threads) };
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
async function measureDevice(device: ChosenDevice, threads: number): Promise<number> {
  const runtime = new Runtime({ device, threads });
  try {
    if (device === "webgpu" && isSoftwareAdapter((await runtime.getGpuReport()).adapter)) return 0;
    return (await measureProducts(runtime, SIZE)).rate;
  } catch (error) {
    if (device === "cpu") throw error;
    return 0;
  } finally {
    await runtime.close();
  }
}

/**
 * Multiplies float32 matrices [size, size] that are on the device; returns the rate in GFLOP/s, and
 * the seconds of the first run, which compiles kernels.
 */
export async function measureProducts(runtime: Runtime, size: number): Promise<{ rate: number; first: number }> {
  const [a, b] = ["a", "b"].map((name) => input(name, "float32", [size, size]));
  const product = Array.from({ length: PRODUCTS }).reduce<typeof a>((x) => mul(matmul(x, b), 0.5), a);
  const session = await runtime.createSession(compile({ sum: reduceSum(product) }));
  const feeds = { a: runtime.allocate("float32", [size, size]), b: runtime.allocate("float32", [size, size]) };
  const time = async (runs: number): Promise<number> => {
    const since = performance.now();
    for (let run = 0; run < runs; run++) await session.run(feeds);
    return (performance.now() - since) / 1000;
  };
  try {
    const first = await time(1);
    return { rate: (2 * RUNS * PRODUCTS * size ** 3) / (await time(RUNS)) / 1e9, first };
  } finally {
    runtime.free(feeds.a);
    runtime.free(feeds.b);
    await session.release();
  }
}
