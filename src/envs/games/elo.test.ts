import { expect, it } from "vitest";
import { computeElo } from "./elo.js";

it("gives players 400 points for odds of 10 to 1", () => {
  const [, strong, weak] = computeElo(
    [
      { first: 0, second: 1, score: 1 / 11, games: 1e6 },
      { first: 2, second: 1, score: 1 / 101, games: 1e6 },
      { first: 0, second: 2, score: 10 / 11, games: 1e6 },
    ],
    3,
  );
  expect(strong).toBeCloseTo(400, 1);
  expect(weak).toBeCloseTo(-400, 1);
});

it("rates players that never lose, and equal ones alike", () => {
  const [, best, equal] = computeElo(
    [
      { first: 0, second: 1, score: 0, games: 100 },
      { first: 0, second: 2, score: 0, games: 100 },
      { first: 1, second: 2, score: 0.5, games: 100 },
    ],
    3,
  );
  expect(best).toBeCloseTo(equal, 6);
  expect(best).toBeGreaterThan(800);
  expect(best).toBeLessThan(1200);
});
