export * from "./rl/agent/index.js";
export * from "./rl/algorithms/index.js";
export {
  boolean,
  choice,
  integer,
  list,
  number,
  text,
  type Setting,
  type Settings,
  type SettingTable,
} from "./core/settings.js";
export type { Trajectory, TrajectoryEnd, Turn } from "./rl/rollout/trajectory.js";
export { Env, make, openEnv, register, type StepResult } from "./envs/index.js";
export { LlamaGymError, type ErrorCode } from "./core/errors.js";
export * from "./rl/algorithms/sft/index.js";
export type { DownloadProgress } from "./models/files/index.js";
export * from "./generation/index.js";
export type { SamplingParams } from "./engine/runtime/kernels/sampling.js";
export type { PeftOptions } from "./models/adapters/get-peft-model.js";
export type { LoraConfig } from "./models/files/index.js";
export * from "./models/registry/index.js";
export type { ExportDtype, ExportFormat, ExportOptions } from "./models/export/export-model.js";
export type { SaveOptions } from "./models/save-model.js";
export type { ValueHeadConfig } from "./engine/nn/value-head.js";
export type { Device } from "./engine/runtime/device.js";
export { judge, type Judge, type JudgedConversation, type JudgeOptions } from "./app/judge/judge.js";
export * from "./app/runs/index.js";
export { Caller, type CallerCompletion, type CallerGenerateOptions, type CallerOptions } from "./app/server/caller.js";
export type { OutputFunction, OutputFunctions } from "./app/server/score-engine.js";
export { RandomStream, type RandomState } from "./core/random/random-stream.js";
export * from "./models/text/index.js";
export * from "./app/tracking/index.js";
export * from "./rl/tracking/index.js";
