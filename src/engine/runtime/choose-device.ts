import { system } from "#platform";
import { type ChosenDevice, type DeviceRates, listInstalledDevices } from "./device.js";

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
export async function getDeviceRates({
  threads = system.countCores(),
  refresh = false,
}: { readonly threads?: number; readonly refresh?: boolean } = {}): Promise<DeviceRates> {
  const { findDeviceRates } = await import("./device-rates.js");
  return findDeviceRates(threads, refresh);
}
