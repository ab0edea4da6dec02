import { expect, it } from "vitest";
import { PhaseClock } from "./clock.js";

function clockAt() {
  const time = { now: 500 };
  return { time, clock: new PhaseClock(() => time.now) };
}

it("adds up phases and the whole between laps, in seconds", async () => {
  const { time, clock } = clockAt();
  const result = await clock.time("rollout", () => {
    time.now += 1500;
    return 7;
  });
  await clock.time("update", async () => void (time.now += 250));
  await clock.time("rollout", () => void (time.now += 500));
  time.now += 100;
  expect(result).toBe(7);
  expect(clock.lap()).toEqual({ step_time: 2.35, "time/rollout": 2, "time/update": 0.25 });
  time.now += 1000;
  expect(clock.lap()).toEqual({ step_time: 1 });
});

it("counts a phase that throws", async () => {
  const { time, clock } = clockAt();
  const failing = clock.time("update", () => {
    time.now += 2000;
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  expect(clock.lap()["time/update"]).toBe(2);
});
