import { constants, lstat, mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { filterSettings } from "../../core/settings.js";
import { writeJson } from "../../core/files/json-file.js";
import type { TrainRequests } from "../../rl/train/index.js";
import type { RunLog } from "./run-log.js";
import { runSettings } from "./run-settings.js";

const CONTROL_FOLDER = "control";
/** Bytes of a request, which has some ten. */
const MAX_REQUEST_BYTES = 4_096;
/** Requests that are carried out between two updates; more wait. */
const MAX_REQUESTS = 100;

type LiveSetting = keyof typeof runSettings;
/**
 * Settings that a run takes over between two updates; the others that are changeable need a
 * restart.
 */
export const LIVE_SETTINGS = Object.keys(
  filterSettings(runSettings, ({ changeable }) => changeable === "live"),
) as LiveSetting[];

/** What can be asked of a running run. */
export const controlSchema = z.discriminatedUnion("action", [
  z.object({ action: z.literal("checkpoint") }),
  z.object({ action: z.literal("stop") }),
  z.object({ action: z.literal("set"), name: z.enum(LIVE_SETTINGS), value: z.int() }),
]);
export type ControlAction = z.infer<typeof controlSchema>;

/**
 * Whether a path is a folder and not a link: requests are read and removed in the run's folder
 * alone.
 */
async function isRealFolder(path: string): Promise<boolean> {
  return lstat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

/**
 * Leaves a request in a run's folder, which the run takes up after its current update, and returns
 * its id.
 * @throws FILE_WRITE_FAILED, also where the folder of requests is a link or a file.
 */
export async function requestControl(folder: string, action: ControlAction): Promise<string> {
  // Ids in the order of their time, so that requests are carried out in that order.
  const id = `${Date.now()}-${crypto.randomUUID().slice(0, 8)}`;
  const control = join(folder, CONTROL_FOLDER);
  await mkdir(control).catch(() => {});
  if (!(await isRealFolder(control)))
    throw new LlamaGymError(
      "FILE_WRITE_FAILED",
      `${control} is not a folder, or a link to one, which could lead outside of the run. Remove it.`,
    );
  await writeJson(join(control, `${id}.json`), action);
  return id;
}

/** Removes requests that an earlier process left. */
export async function clearControl(folder: string): Promise<void> {
  await rm(join(folder, CONTROL_FOLDER), { recursive: true, force: true });
}

/**
 * Carries out the requests in a run's folder and logs each; `change` changes a setting or throws.
 */
export async function takeControlRequests(
  folder: string,
  log: RunLog,
  change: (name: LiveSetting, value: number) => Promise<TrainRequests>,
): Promise<TrainRequests> {
  const control = join(folder, CONTROL_FOLDER);
  const names = (await isRealFolder(control)) ? await readdir(control).catch(() => []) : [];
  const requests: TrainRequests = {};
  for (const name of names
    .filter((name) => /^[\w-]{1,60}\.json$/.test(name))
    .sort()
    .slice(0, MAX_REQUESTS)) {
    const path = join(control, name);
    const id = name.slice(0, -".json".length);
    try {
      const action = await readRequest(path);
      if (action.action === "set") Object.assign(requests, await change(action.name, action.value));
      else Object.assign(requests, action.action === "stop" ? { stop: true } : { checkpoint: true });
      log.control(describe(action), id, true);
    } catch (error) {
      log.control(`A request was refused: ${errorMessage(error)}`, id, false);
    }
    await rm(path, { force: true, recursive: true });
  }
  return requests;
}

async function readRequest(path: string): Promise<ControlAction> {
  // Links are not followed, and named pipes do not block.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error("it is no file.");
    if (stats.size > MAX_REQUEST_BYTES) throw new Error("it is too long.");
    return controlSchema.parse(JSON.parse(await file.readFile("utf8")));
  } finally {
    await file.close();
  }
}

function describe(action: ControlAction): string {
  if (action.action === "checkpoint") return "Saved a checkpoint on request.";
  if (action.action === "stop") return "Stopped on request after this update.";
  return `Set ${action.name} to ${action.value} on request.`;
}
