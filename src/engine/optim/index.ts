export * from "./optimizer.js";
export {
  warmupScheduleFactor,
  type ScheduleOptions,
  SCHEDULES,
  type ScheduleName,
  scheduleFactor,
} from "./schedule.js";
