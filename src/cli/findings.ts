import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, statfs } from "node:fs/promises";
import { createRequire } from "node:module";
import { availableParallelism, cpus, freemem, totalmem } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { hubSettings, type HubSettings } from "../files/index.js";
import { installedDevices, resolveProviders, runtimeVersion, type Device } from "../runtime/device.js";
import { formatBytes } from "./output.js";

/** Something about this machine: good, worth knowing, missing for some uses, or broken for all. */
export interface Finding {
  readonly state: "ok" | "note" | "missing" | "broken";
  readonly name: string;
  readonly value: string;
  /** What to do about it. */
  readonly advice?: string;
}

const OLDEST_NODE = [20, 19];
const LITTLE_DISK = 2e9;
const LITTLE_MEMORY = 2e9;
const NETWORK_TIMEOUT = 4000;

/** Looks at everything that the library depends on. */
export async function findings(): Promise<readonly Finding[]> {
  const settings = await hubSettings();
  return [
    ...versions(),
    ...machine(),
    ...(await Promise.all((["cpu", "webgpu", "cuda"] as const).map(device))),
    await cache(settings),
    ...environment(settings),
    await network(settings),
  ];
}

function versions(): Finding[] {
  const own = createRequire(import.meta.url)("../../package.json") as { version: string };
  const [major, minor] = process.versions.node.split(".").map(Number);
  const old = major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
  return [
    { state: "ok", name: "llamagym", value: own.version },
    {
      state: old ? "broken" : "ok",
      name: "node",
      value: `${process.versions.node} (${process.platform} ${process.arch})`,
      ...(old ? { advice: `Install Node.js ${OLDEST_NODE.join(".")} or newer.` } : {}),
    },
    { state: "ok", name: "onnxruntime-node", value: runtimeVersion() },
  ];
}

function machine(): Finding[] {
  const model = cpus().at(0)?.model.trim() ?? "unknown processor";
  const free = freemem();
  return [
    { state: "ok", name: "threads", value: `${availableParallelism()} (${model})` },
    {
      state: free < LITTLE_MEMORY ? "missing" : "ok",
      name: "memory",
      value: `${formatBytes(free)} free of ${formatBytes(totalmem())}`,
      ...(free < LITTLE_MEMORY ? { advice: "Close other programs, or take a smaller model (llamagym models)." } : {}),
    },
  ];
}

/** A device is there when a small graph runs on it. */
async function device(name: Exclude<Device, "auto">): Promise<Finding> {
  const label = `device ${name}`;
  try {
    resolveProviders(name);
  } catch (error) {
    return {
      state: name === "cpu" ? "broken" : "note",
      name: label,
      value: "not installed",
      advice: (error as Error).message,
    };
  }
  const outcome = await probe(name);
  if (outcome === "ok")
    return { state: "ok", name: label, value: name === autoDevice() ? "works, taken by auto" : "works" };
  return {
    state: name === "cpu" ? "broken" : "note",
    name: label,
    value: "installed, but does not answer",
    advice: `${outcome.replaceAll("\n", " ").trim()} ${DRIVER_ADVICE[name] ?? ""}`.trim(),
  };
}

const DRIVER_ADVICE: Readonly<Record<string, string>> = {
  webgpu: "It needs a graphics card and its driver: Vulkan on Linux, Direct3D 12 on Windows, Metal on macOS.",
  cuda: "It needs an NVIDIA card, its driver, CUDA 12 and cuDNN 9.",
};

function autoDevice(): string {
  return installedDevices().length === 0 ? "none" : resolveProviders("auto").device;
}

function probe(name: string): Promise<string> {
  const script = fileURLToPath(new URL("./probe-device.js", import.meta.url));
  return new Promise((resolve) => {
    execFile(process.execPath, [script, name], { timeout: 30_000 }, (error, stdout) => {
      resolve(stdout === "" ? `The test ended without an answer (${error?.message ?? "no output"}).` : stdout);
    });
  });
}

async function cache({ cacheDir }: HubSettings): Promise<Finding> {
  const name = "cache";
  let folder = cacheDir;
  // The folder is made at the first download; until then the one above says whether that can be.
  while (!(await canAccess(folder, constants.F_OK)) && dirname(folder) !== folder) folder = dirname(folder);
  if (!(await canAccess(folder, constants.W_OK))) {
    const advice = `${folder} cannot be written: set HF_HOME or HF_HUB_CACHE to a folder that can.`;
    return { state: "missing", name, value: cacheDir, advice };
  }
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  return {
    state: free < LITTLE_DISK ? "missing" : "ok",
    name,
    value: `${cacheDir} (${formatBytes(free)} free)`,
    ...(free < LITTLE_DISK
      ? { advice: "There is little room for models: free some space, or set HF_HOME to another disk." }
      : {}),
  };
}

async function canAccess(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}

function environment({ token }: HubSettings): Finding[] {
  const set = Object.keys(process.env).filter((name) => name.startsWith("HF_") && process.env[name] !== "");
  const shown = set.sort().map((name) => (name.includes("TOKEN") ? `${name}=(set)` : `${name}=${process.env[name]}`));
  return [
    { state: "note", name: "HF_ variables", value: shown.length === 0 ? "none set" : shown.join(" ") },
    token === undefined
      ? {
          state: "note",
          name: "hub token",
          value: "none",
          advice: "Needed for gated models only: make one at https://huggingface.co/settings/tokens and set HF_TOKEN.",
        }
      : { state: "ok", name: "hub token", value: "found" },
  ];
}

async function network({ endpoint, offline }: HubSettings): Promise<Finding> {
  const name = "hub";
  if (offline) return { state: "note", name, value: "not used: HF_HUB_OFFLINE is set" };
  try {
    await fetch(endpoint, { method: "HEAD", signal: AbortSignal.timeout(NETWORK_TIMEOUT) });
    return { state: "ok", name, value: `${endpoint} answers` };
  } catch {
    const advice =
      "Models that are not in the cache cannot be fetched. Check the network and its proxy, or set HF_ENDPOINT to a mirror; " +
      "local folders and GGUF files work without.";
    return { state: "missing", name, value: `${endpoint} does not answer`, advice };
  }
}
