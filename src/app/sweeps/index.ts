export type { Rung } from "./halving-rungs.js";
export type { SweepPlan, Trial } from "./sweep-plan.js";
export type { RungResult, TrialResult, TrialRun } from "./trial-result.js";
export type { Dimension, SearchRange, SearchSpace, SettingValue } from "./search-space.js";
export type { SweepConfig, SweepOptions } from "./sweep-settings.js";
export { runSweep, type SweepResult, type SweepRun, type SweepCallbacks } from "./run-sweep.js";
export type { TrialSettings } from "./trial-settings.js";
