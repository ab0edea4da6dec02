export * from "./optimizer.js";
export { warmupScheduleFactor, type ScheduleOptions } from "./schedule.js";
