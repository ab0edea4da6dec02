/** Training on preferences: DPO, KTO and online DPO. */
export { onlineDpo, type OnlineDpoConfig, type OnlineDpoOptions } from "./rl/algorithms/index.js";
export type { DpoEvaluation, DpoMetrics } from "./rl/preferences/dpo-learner.js";
export type { DpoConfig, DpoOptions } from "./rl/preferences/dpo-settings.js";
export type { KtoEvaluation, KtoMetrics } from "./rl/preferences/kto-learner.js";
export type { KtoConfig, KtoOptions } from "./rl/preferences/kto-settings.js";
export type { PreferenceExample, UnpairedPreferenceExample } from "./rl/preferences/preference-example.js";
export { readPreferences, readUnpairedPreferences, type ReadPreferences } from "./rl/preferences/read-preferences.js";
export { DpoTrainer, type DpoTrainerOptions, type DpoTrainOptions } from "./rl/preferences/dpo-trainer.js";
export { KtoTrainer, type KtoTrainerOptions, type KtoTrainOptions } from "./rl/preferences/kto-trainer.js";
