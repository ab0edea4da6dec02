export {
  Optimizer,
  type AdamWOptions,
  type OptimizerOptions,
  type OptimizerState,
  type SgdOptions,
  type OptimizerStepResult,
  type TrainableParameters,
} from "./optimizer.js";
export { warmupScheduleFactor, type ScheduleOptions } from "./schedule.js";
