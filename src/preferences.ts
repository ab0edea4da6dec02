/** Training on preferences: DPO and KTO. */
export type { DpoEvaluation, DpoMetrics } from "./rl/algorithms/preference/dpo-learner.js";
export type { DpoConfig, DpoOptions } from "./rl/algorithms/preference/dpo-settings.js";
export type { KtoEvaluation, KtoMetrics } from "./rl/algorithms/preference/kto-learner.js";
export type { KtoConfig, KtoOptions } from "./rl/algorithms/preference/kto-settings.js";
export type { PreferenceExample, UnpairedPreferenceExample } from "./rl/data/preference-example.js";
export { readPreferences, readUnpairedPreferences, type ReadPreferences } from "./rl/data/read-preferences.js";
export { DpoTrainer, type DpoTrainerOptions, type DpoTrainOptions } from "./rl/train/dpo-trainer.js";
export { KtoTrainer, type KtoTrainerOptions, type KtoTrainOptions } from "./rl/train/kto-trainer.js";
