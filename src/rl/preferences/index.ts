export type { DpoEvaluation, DpoMetrics } from "./dpo-learner.js";
export { dpoSettings, resolveDpoConfig, type DpoConfig } from "./dpo-settings.js";
export { DpoTrainer } from "./dpo-trainer.js";
export type { KtoEvaluation, KtoMetrics } from "./kto-learner.js";
export { ktoSettings, resolveKtoConfig, type KtoConfig } from "./kto-settings.js";
export { KtoTrainer } from "./kto-trainer.js";
export { readPreferences, readUnpairedPreferences } from "./read-preferences.js";
