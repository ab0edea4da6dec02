import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, statfs } from "node:fs/promises";
import { createRequire } from "node:module";
import { cpus, freemem, totalmem } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { system } from "#platform";
import { resolveHubConfig, type HubConfig } from "../../models/files/index.js";
import {
  type ChosenDevice,
  type DeviceRates,
  getRuntimeVersion,
  prefersGpu,
  resolveDevice,
} from "../../engine/runtime/index.js";
import { formatBytes } from "../../core/format.js";
import { describeGpu, findMissingVulkan, findVulkanFiles } from "./describe-gpu.js";
import type { DeviceProbe } from "./probe-device.js";

/** A property of this machine: good, worth a note, missing for some uses, or broken for all. */
export interface Diagnostic {
  readonly state: "ok" | "note" | "missing" | "broken";
  readonly name: string;
  readonly value: string;
  /** How to fix it. */
  readonly advice?: string;
}

const MIN_NODE_VERSION = [20, 19];
const LOW_DISK_BYTES = 2e9;
const LOW_MEMORY_BYTES = 2e9;
const NETWORK_TIMEOUT_MS = 4000;

/** Checks everything that the library depends on. */
export async function diagnostics(): Promise<readonly Diagnostic[]> {
  const settings = await resolveHubConfig();
  return [
    ...(await checkVersions()),
    ...checkMachine(),
    ...(await Promise.all((["cpu", "webgpu"] as const).map(checkDevice))),
    await checkCache(settings),
    ...checkEnvironment(settings),
    await checkNetwork(settings),
  ];
}

async function checkVersions(): Promise<Diagnostic[]> {
  const packageJson = createRequire(import.meta.url)("../../../package.json") as { version: string };
  const [major, minor] = process.versions.node.split(".").map(Number);
  const isOutdated = major < MIN_NODE_VERSION[0] || (major === MIN_NODE_VERSION[0] && minor < MIN_NODE_VERSION[1]);
  return [
    { state: "ok", name: "llamagym", value: packageJson.version },
    {
      state: isOutdated ? "broken" : "ok",
      name: "node",
      value: `${process.versions.node} (${process.platform} ${process.arch})`,
      ...(isOutdated ? { advice: `Install Node.js ${MIN_NODE_VERSION.join(".")} or newer.` } : {}),
    },
    { state: "ok", name: "onnxruntime-node", value: await getRuntimeVersion() },
  ];
}

function checkMachine(): Diagnostic[] {
  const model = cpus().at(0)?.model.trim() ?? "unknown processor";
  const free = freemem();
  return [
    { state: "ok", name: "threads", value: `${system.countCores()} (${model})` },
    {
      state: free < LOW_MEMORY_BYTES ? "missing" : "ok",
      name: "memory",
      value: `${formatBytes(free)} free of ${formatBytes(totalmem())}`,
      ...(free < LOW_MEMORY_BYTES ? { advice: "Close other programs or use a smaller model (llamagym models)." } : {}),
    },
  ];
}

/** Reports a device as available if a small graph runs on it. */
async function checkDevice(name: ChosenDevice): Promise<Diagnostic> {
  const label = `device ${name}`;
  try {
    resolveDevice(name);
  } catch (error) {
    return { state: "note", name: label, value: "not installed", advice: (error as Error).message };
  }
  const { failure, gpu, rates } = await probeDevice(name);
  if (failure === undefined) {
    const details = gpu === undefined ? "" : `: ${describeGpu(gpu)}${describeChoice(rates!)}`;
    return { state: "ok", name: label, value: `works${details}` };
  }
  const causes = name === "webgpu" && process.platform === "linux" ? explainVulkan() : [DRIVER_HINTS[name]];
  return {
    state: name === "cpu" ? "broken" : "note",
    name: label,
    value: "installed, but not working",
    advice: [failure.replaceAll("\n", " ").trim(), ...causes].join(" ").trim(),
  };
}

function explainVulkan(): string[] {
  const missing = findMissingVulkan(findVulkanFiles());
  return missing.length > 0 ? missing : [VULKAN_HINT];
}

const VULKAN_HINT =
  "Vulkan is installed, but has no device that WebGPU accepts; `vulkaninfo --summary` lists its devices.";

const DRIVER_HINTS: Readonly<Record<string, string>> = {
  webgpu: "It needs a graphics card and its driver: Vulkan on Linux, Direct3D 12 on Windows, Metal on macOS.",
};

/** Says what `auto` does with the GPU, and why. */
function describeChoice(rates: DeviceRates): string {
  const { cpu, webgpu } = rates;
  const rate = webgpu === 0 ? "" : ` (products of matrices: ${Math.round(webgpu)} GFLOP/s, CPU ${Math.round(cpu)})`;
  return prefersGpu(rates) ? `; auto uses it for all but small models${rate}` : `; auto uses the CPU${rate}`;
}

function probeDevice(name: string): Promise<DeviceProbe> {
  const script = fileURLToPath(new URL("./probe-device.js", import.meta.url));
  return new Promise((resolve) => {
    execFile(process.execPath, [script, name], { timeout: 30_000 }, (error, stdout) => {
      const failure = `The test ended without output (${error?.message ?? "no error"}).`;
      resolve(stdout === "" ? { failure } : (JSON.parse(stdout) as DeviceProbe));
    });
  });
}

async function checkCache({ cacheDir }: HubConfig): Promise<Diagnostic> {
  const name = "cache";
  let folder = cacheDir;
  // The folder is created at the first download. Until then, check the closest existing parent.
  while (!(await canAccess(folder, constants.F_OK)) && dirname(folder) !== folder) folder = dirname(folder);
  if (!(await canAccess(folder, constants.W_OK))) {
    const advice = `${folder} is not writable. Set HF_HOME or HF_HUB_CACHE to a writable folder.`;
    return { state: "missing", name, value: cacheDir, advice };
  }
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  return {
    state: free < LOW_DISK_BYTES ? "missing" : "ok",
    name,
    value: `${cacheDir} (${formatBytes(free)} free)`,
    ...(free < LOW_DISK_BYTES
      ? { advice: "Disk space for models is low. Free some space, or set HF_HOME to another disk." }
      : {}),
  };
}

async function canAccess(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}

function checkEnvironment({ token }: HubConfig): Diagnostic[] {
  const names = Object.keys(process.env).filter((name) => name.startsWith("HF_") && process.env[name] !== "");
  const formatted = names
    .sort()
    .map((name) => (name.includes("TOKEN") ? `${name}=(set)` : `${name}=${process.env[name]}`));
  return [
    { state: "note", name: "HF_ variables", value: formatted.length === 0 ? "none set" : formatted.join(" ") },
    token === undefined
      ? {
          state: "note",
          name: "hub token",
          value: "none",
          advice:
            "Needed for gated models only. Create one at https://huggingface.co/settings/tokens and set HF_TOKEN.",
        }
      : { state: "ok", name: "hub token", value: "found" },
  ];
}

async function checkNetwork({ endpoint, offline }: HubConfig): Promise<Diagnostic> {
  const name = "hub";
  if (offline) return { state: "note", name, value: "not used (HF_HUB_OFFLINE is set)" };
  try {
    await fetch(endpoint, { method: "HEAD", signal: AbortSignal.timeout(NETWORK_TIMEOUT_MS) });
    return { state: "ok", name, value: `${endpoint} is reachable` };
  } catch {
    const advice =
      "Models outside the cache cannot be downloaded. Check the network and its proxy, or set HF_ENDPOINT to a mirror. " +
      "Local folders and GGUF files work offline.";
    return { state: "missing", name, value: `${endpoint} is unreachable`, advice };
  }
}
