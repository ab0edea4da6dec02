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

it("weighs later games more, and counts a game without seats as one of the first", () => {
  const single = [4, 2, 0].map((reward) => ({ seat: undefined, rewards: [reward] }));
  const { baselines, state } = computeSeatBaselines(single, INITIAL_SEAT_BASELINE, true);
  const second = (0.95 * 4 + 2) / (0.95 + 1);
  expect(baselines).toEqual([0, expect.closeTo(4, 12), expect.closeTo(second, 12)]);
  expect(state.seats).toEqual([
    {
      sum: expect.closeTo(0.05 * (0.95 ** 2 * 4 + 0.95 * 2), 12) as number,
      weight: expect.closeTo(0.05 * (0.95 ** 2 + 0.95 + 1), 12) as number,
    },
  ]);
});

it("starts at 0 without the correction, as in SPIRAL", () => {
  const { baselines } = computeSeatBaselines(episodes, INITIAL_SEAT_BASELINE, false);
  expect(baselines).toEqual([0, 0, expect.closeTo(0.05, 12), expect.closeTo(-0.05, 12)]);
});
