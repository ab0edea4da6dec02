import { expect, it } from "vitest";
import { computeSeatBaselines, INITIAL_SEAT_BASELINE } from "./seat-baseline.js";

const episodes = [
  { seat: 0, rewards: [1] },
  { seat: 1, rewards: [0, -1] },
  { seat: 0, rewards: [1] },
  { seat: 1, rewards: [-1] },
];

it("is the mean return of the seat in the games before, corrected for its start at 0", () => {
  const { baselines, state } = computeSeatBaselines(episodes, INITIAL_SEAT_BASELINE, true);
  expect(baselines).toEqual([0, 0, 1, -1]);
  expect(computeSeatBaselines(episodes.slice(0, 1), state, true).baselines[0]).toBeCloseTo(1, 12);
});

it("starts at 0 without the correction, as in SPIRAL", () => {
  const { baselines } = computeSeatBaselines(episodes, INITIAL_SEAT_BASELINE, false);
  expect(baselines).toEqual([0, 0, expect.closeTo(0.05, 12), expect.closeTo(-0.05, 12)]);
});
