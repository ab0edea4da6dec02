export type { Rung } from "./halving.js";
export type { SweepPlan, Trial } from "./plan.js";
export type { Measure, TrialResult, TrialRun } from "./results.js";
export type { Dimension, SearchRange, SearchSpace, SettingValue } from "./search-space.js";
export type { SweepConfig, SweepOptions } from "./settings.js";
export { runSweep, type SweepResult, type SweepStage, type SweepWatch } from "./sweep.js";
export type { TrialSettings } from "./trial-settings.js";
