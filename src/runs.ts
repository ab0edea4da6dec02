export { judge, type Judge, type JudgedConversation, type JudgeOptions } from "./app/judge/judge.js";
export * from "./app/runs/index.js";
export { Caller, type CallerCompletion, type CallerGenerateOptions, type CallerOptions } from "./app/server/caller.js";
export type { OutputFunction, OutputFunctions } from "./app/server/score-engine.js";
export * from "./app/sweeps/index.js";
export * from "./app/tracking/index.js";
export { openRunTrackers, type RunTrackersOptions } from "./rl/tracking/open-run-trackers.js";
export { openTensorBoardTracker, type TensorBoardOptions } from "./rl/tracking/tensorboard/tensorboard-tracker.js";
