import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Settings } from "../../core/settings.js";
import { AutoModelForCausalLM } from "../../generation/index.js";
import type { DownloadProgress } from "../../models/files/index.js";
import type { TeacherOptions } from "../../rl/algorithms/index.js";
import { findRunResult } from "../../rl/train/index.js";
import type { TrainConfig } from "./run-settings.js";
import type { teacherSettings } from "./teacher-settings.js";

interface OpenTeacherOptions {
  readonly onDownload?: ((progress: DownloadProgress) => void) | undefined;
  readonly defer: (close: () => Promise<void>) => void;
}

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
  const path = existsSync(join(teacher, "log.jsonl")) ? await findRunResult(teacher) : teacher;
  const model = await AutoModelForCausalLM.fromPretrained(path, { device, threads, onProgress: onDownload });
  defer(async () => model.close());
  return { model, ...options };
}
