export * from "./spaces/index.js";
export {
  Env,
  type EnvFactory,
  type EnvMetadata,
  type EnvOptions,
  type EnvSpec,
  type EnvState,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type RgbImage,
  type StepResult,
} from "./env.js";
export type { Info } from "./info.js";
export type { JsonValue } from "./json.js";
export { andThen, type MaybePromise } from "./maybe-promise.js";
export { make, register, registry, type MakeOptions } from "./registry/make.js";
export { EnvRegistry, type Registration } from "./registry/registry.js";
export { choicesFor, type Choices, type TextForm } from "./text-form.js";
export { PassThroughWrapper, Wrapper } from "./wrapper.js";
export { OrderEnforcing } from "./wrappers/order-enforcing.js";
export { PassiveEnvChecker } from "./wrappers/passive-env-checker.js";
export { TimeLimit } from "./wrappers/time-limit.js";
export { AcrobotEnv } from "./classic-control/acrobot.js";
export { CartPoleEnv, type CartPoleOptions } from "./classic-control/cart-pole.js";
export { ContinuousMountainCarEnv } from "./classic-control/continuous-mountain-car.js";
export { MountainCarEnv, type MountainCarOptions } from "./classic-control/mountain-car.js";
export { PendulumEnv, type PendulumOptions } from "./classic-control/pendulum.js";
export { encodePng } from "./rendering/png.js";
export { BlackjackEnv, type BlackjackOptions } from "./toy-text/blackjack.js";
export type { BlackjackObservation } from "./toy-text/blackjack-text.js";
export { CliffWalkingEnv, type CliffWalkingOptions } from "./toy-text/cliff-walking.js";
export { FrozenLakeEnv, type FrozenLakeOptions } from "./toy-text/frozen-lake.js";
export { FROZEN_LAKE_MAPS, generateRandomMap } from "./toy-text/frozen-lake-map.js";
export { TabularEnv, type Transition, type TransitionTable } from "./toy-text/tabular-env.js";
export { TaxiEnv, type TaxiOptions } from "./toy-text/taxi.js";
export { lastNamedAction, lastNumber, signed } from "./text-parsing.js";
export * from "./text-world/index.js";
