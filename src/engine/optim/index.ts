export * from "./optimizer.js";
export {
  isStepSchedule,
  warmupScheduleFactor,
  type ScheduleOptions,
  type ScheduleShape,
  SCHEDULES,
  type ScheduleName,
  scheduleFactor,
} from "./schedule.js";
