export {
  Optimizer,
  type AdamWOptions,
  type OptimizerOptions,
  type OptimizerState,
  type SgdOptions,
  type StepResult,
  type Trainable,
} from "./optimizer.js";
export { scheduleFactor, type ScheduleOptions } from "./schedule.js";
