import { existsSync, readdirSync } from "node:fs";
import { formatBytes } from "../../core/format.js";
import { type GpuReport, isSoftwareAdapter } from "../../engine/runtime/index.js";

/** Features that faster kernels could use. */
const NAMED_FEATURES = ["shader-f16", "subgroups", "chromium-experimental-subgroup-matrix"];

/** Describes a GPU that works: its adapter, its features and its largest buffer. */
export function describeGpu({ adapter, features, maxBufferBytes }: Omit<GpuReport, "counters">): string {
  const named = NAMED_FEATURES.filter((name) => features.includes(name));
  const kind = isSoftwareAdapter(adapter) ? ", a software device slower than the CPU" : "";
  return `${adapter}${kind}; buffers up to ${formatBytes(maxBufferBytes)}; ${named.length === 0 ? "no optional features" : named.join(", ")}`;
}

/** What the file system says of Vulkan. */
export interface VulkanFiles {
  /** Value of VK_ICD_FILENAMES or VK_DRIVER_FILES. */
  readonly configured: string | undefined;
  readonly exists: (path: string) => boolean;
  /** Names in a folder; none if it is missing. */
  readonly list: (folder: string) => readonly string[];
}

const LIBRARY_FOLDERS = ["/usr/lib64", "/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
const DRIVER_FOLDERS = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];

/** Returns what Vulkan lacks on Linux, each with its cure. */
export function findMissingVulkan({ configured, exists, list }: VulkanFiles): string[] {
  const missing: string[] = [];
  if (!LIBRARY_FOLDERS.some((folder) => exists(`${folder}/libvulkan.so.1`)))
    missing.push("The Vulkan loader is missing: install libvulkan1 (Debian, Ubuntu) or vulkan-loader (Fedora).");
  const files = configured?.split(":").filter((path) => path !== "");
  const absent = files?.filter((path) => !exists(path)) ?? [];
  if (absent.length > 0) missing.push(`VK_ICD_FILENAMES names a missing file: ${absent.join(", ")}.`);
  const drivers = files ?? DRIVER_FOLDERS.flatMap(list).filter((name) => name.endsWith(".json"));
  if (drivers.length > 0) return missing;
  const isNvidia = exists("/dev/nvidia0") || exists("/dev/nvidiactl");
  if (isNvidia)
    missing.push(
      "An NVIDIA GPU is there, but not its Vulkan driver: start the container with " +
        "NVIDIA_DRIVER_CAPABILITIES=all, or install the driver with its graphics libraries.",
    );
  else if (list("/dev/dri").length > 0)
    missing.push("A GPU is there, but no Vulkan driver: install mesa-vulkan-drivers (AMD, Intel).");
  else missing.push("No GPU is visible in /dev. In a container, pass it with --gpus all or --device /dev/dri.");
  return missing;
}

/** Looks Vulkan up on this machine. */
export function findVulkanFiles(): VulkanFiles {
  return {
    configured: process.env.VK_DRIVER_FILES ?? process.env.VK_ICD_FILENAMES,
    exists: existsSync,
    list: (folder) => {
      try {
        return readdirSync(folder);
      } catch {
        return [];
      }
    },
  };
}
