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
