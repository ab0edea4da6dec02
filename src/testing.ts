/** Contract checks for plug-ins: each throws at the first violation. */
export { checkArchitecture, type ArchitectureFixture } from "./generation/check-architecture.js";
export { checkOperation, type OperationCase, type OperationInput, type PlainArray } from "./engine/check-operation.js";
export { checkEnv, type CheckEnvOptions } from "./envs/check/check-env.js";
export { checkGame, type CheckGameOptions } from "./envs/games/check-game.js";
export { checkAlgorithm, type CheckAlgorithmOptions } from "./rl/algorithms/check-algorithm.js";
export { checkTracker, type TrackerFactory } from "./rl/tracking/check-tracker.js";
export { checkRewardFunction, type CheckRewardFunctionOptions } from "./rl/train/prompts/check-reward-function.js";
export { expectToLearn, type ExpectToLearnOptions, type ExpectToLearnResult } from "./app/runs/expect-to-learn.js";
