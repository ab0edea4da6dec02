import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Settings } from "../../core/settings.js";
import { AutoModelForCausalLM } from "../../generation/index.js";
import type { DownloadProgress } from "../../models/files/index.js";
import type { TeacherOptions } from "../../rl/algorithms/index.js";
import type { TrainConfig } from "./run-settings.js";
import type { teacherSettings } from "./teacher-settings.js";

interface OpenTeacherOptions {
  readonly onDownload?: ((progress: DownloadProgress) => void) | undefined;
  readonly defer: (close: () => Promise<void>) => void;
}

/** Folders of the result in a run folder. */
const RESULT_FOLDERS = ["adapter", "model"];

/**
 * Opens the teacher of a run, which is closed with it; undefined without one. @throws as
 * `AutoModelForCausalLM.fromPretrained`
 */
export async function openTeacher(
  {
    teacher,
    teacherHint: hint,
    teacherCoef: coef,
    teacherRewardCoef: rewardCoef,
    device,
    threads,
  }: Settings<typeof teacherSettings> & Pick<TrainConfig, "device" | "threads">,
  { onDownload, defer }: OpenTeacherOptions,
): Promise<TeacherOptions | undefined> {
  if (teacher === undefined) return undefined;
  const options = { ...(hint === undefined ? {} : { hint }), coef, rewardCoef };
  if (teacher === "self") return { model: "self", ...options };
  const path = await findResult(teacher);
  const model = await AutoModelForCausalLM.fromPretrained(path, { device, threads, onProgress: onDownload });
  defer(async () => model.close());
  return { model, ...options };
}

/** Returns the folder of a run's result, or the given path. */
async function findResult(path: string): Promise<string> {
  const exists = async (name: string) =>
    stat(join(path, name)).then(
      () => true,
      () => false,
    );
  if (!(await exists("log.jsonl"))) return path;
  for (const folder of RESULT_FOLDERS) if (await exists(folder)) return join(path, folder);
  return path;
}
