export * from "./optimizer.js";
export {
  warmupScheduleFactor,
  type ScheduleOptions,
  type ScheduleShape,
  SCHEDULES,
  type ScheduleName,
  scheduleFactor,
} from "./schedule.js";
