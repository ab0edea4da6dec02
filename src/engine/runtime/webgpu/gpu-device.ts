import { errorMessage, LlamaGymError } from "../../../core/errors.js";
import type { GPU, GPUBuffer, GPUDevice } from "./webgpu-api.js";

/**
 * Usages of buffers, by WebGPU's values: browsers define the names only where WebGPU is available.
 */
export const BUFFER_USAGE = { mapRead: 1, copySource: 4, copyTarget: 8, uniform: 64, storage: 128 } as const;

const MAP_READ_MODE = 1;

/** An optional dependency, so its types may be missing. */
const PACKAGE: string = "webgpu";

/**
 * The object that npm's webgpu creates must stay referenced: the process aborts when it is
 * collected.
 */
let nodeGpu: GPU | undefined;

/** Limits that an adapter grants beyond the default ones. */
const LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
] as const;

/** An opened GPU. */
export interface OpenedGpu {
  readonly device: GPUDevice;
  /** Name of the adapter, such as "nvidia hopper". */
  readonly name: string;
  /** Optional features that the adapter has. */
  readonly features: readonly string[];
}

async function findGpu(): Promise<GPU> {
  const found = (globalThis as { navigator?: { gpu?: GPU } }).navigator?.gpu;
  if (found !== undefined) return found;
  try {
    const { create } = (await import(PACKAGE)) as { create: (this: void, options: readonly string[]) => GPU };
    return (nodeGpu ??= create([]));
  } catch (error) {
    throw new LlamaGymError("DEVICE_UNAVAILABLE", `npm's webgpu cannot be loaded: ${errorMessage(error)}`);
  }
}

/** Opens the fastest GPU. @throws DEVICE_UNAVAILABLE where there is none. */
export async function openGpu(): Promise<OpenedGpu> {
  const gpu = await findGpu();
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  if (adapter === null)
    throw new LlamaGymError(
      "DEVICE_UNAVAILABLE",
      "No GPU adapter was found. On Linux, install the Vulkan loader (libvulkan1) and the driver of the GPU.",
    );
  const requiredLimits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
  const device = await adapter.requestDevice({ requiredLimits });
  const { vendor, architecture, description } = adapter.info;
  const name = [vendor, architecture, description].filter((part) => part !== "").join(" ");
  return { device, name, features: [...adapter.features].sort() };
}

/** Reads the words of a buffer that was created for reading. */
export async function mapWords(buffer: GPUBuffer, bytes: number): Promise<Uint32Array<ArrayBuffer>> {
  await buffer.mapAsync(MAP_READ_MODE, 0, bytes);
  const words = new Uint32Array(buffer.getMappedRange(0, bytes).slice(0));
  buffer.unmap();
  return words;
}
