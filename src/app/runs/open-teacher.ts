import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Settings } from "../../core/settings.js";
import { AutoModelForCausalLM, type LanguageModel } from "../../generation/index.js";
import type { DownloadProgress } from "../../models/files/index.js";
import type { TeacherOptions } from "../../rl/algorithms/index.js";
import { findRunResult } from "../../rl/train/index.js";
import type { TrainConfig } from "./run-settings.js";
import { isTeacherUrl, type teacherSettings } from "./teacher-settings.js";

/** How the model of a teacher is opened. */
export interface TeacherModelOptions extends Pick<TrainConfig, "device" | "threads"> {
  readonly onDownload?: ((progress: DownloadProgress) => void) | undefined;
}

interface OpenTeacherOptions extends Pick<TeacherModelOptions, "onDownload"> {
  readonly defer: (close: () => Promise<void>) => void;
}

/**
 * Opens the teacher of a run, which is closed with it; undefined without one. @throws as
 * `AutoModelForCausalLM.fromPretrained`
 */
export async function openTeacher(
  {
    teacher,
    teacherModel,
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
  if (isTeacherUrl(teacher)) return { model: { baseURL: teacher, model: teacherModel }, ...options };
  const model = await openTeacherModel(teacher, { device, threads, onDownload });
  defer(async () => model.close());
  return { model, ...options };
}

/**
 * Opens a model, or the result of a run. @throws as `AutoModelForCausalLM.fromPretrained`
 */
export async function openTeacherModel(
  teacher: string,
  { device, threads, onDownload }: TeacherModelOptions,
): Promise<LanguageModel> {
  const path = existsSync(join(teacher, "log.jsonl")) ? await findRunResult(teacher) : teacher;
  return AutoModelForCausalLM.fromPretrained(path, { device, threads, onProgress: onDownload });
}
