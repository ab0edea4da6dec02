import { describe, expect, it } from "vitest";
import { makeTurn } from "../../../test/support/turns.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import type { ScoredTrajectory } from "./algorithm-definition.js";
import { isStale, weighStaleAdvantages } from "./stale-trajectories.js";

/** Probabilities of the tokens when they were sampled. */
const SAMPLED = [0.5, 0.25, 0.5];

const turn = makeTurn({
  tokens: [20, 21, 22],
  logProbs: SAMPLED.map(Math.log),
  allowedTokens: [[1, 2], [21], [1, 2]].map((ids) => Int32Array.from(ids)),
});
const trajectory = (of: Turn, staleness?: number): Trajectory => ({
  turns: [of],
  end: "terminated",
  bootstrapPrompt: undefined,
  group: 0,
  staleness,
});
const scored = (of: Turn, probabilities: readonly number[]): ScoredTrajectory => ({
  turns: [
    {
      turn: of,
      oldLogProbs: Float64Array.from(probabilities, Math.log),
      refLogProbs: undefined,
      oldValues: undefined,
      entropies: undefined,
    },
  ],
  group: 0,
  end: "terminated",
  bootstrapValue: 0,
  rewardsPerFunction: undefined,
});

describe("weighStaleAdvantages", () => {
  it("multiplies advantages by the ratio to the policy that sampled, of 2 at most", () => {
    // The second token was forced, so that the decisions are the first and the third.
    const trajectories = [trajectory(turn, 3), trajectory(turn, 0), trajectory(turn)];
    const policies = trajectories.map(() => scored(turn, [0.75, 0.05]));
    const clipped = [trajectory(turn, 1), ...trajectories];
    const advantages = [[[4, -6]], [[1, 1]], [[2, 2]]];
    const { advantages: found, metrics } = weighStaleAdvantages(trajectories, policies, {
      advantages,
      metrics: { kl: 7 },
    });
    const rows = (all: readonly (readonly ArrayLike<number>[])[]) => all.map(([row]) => Array.from(row));
    const close = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 12) as number);
    expect(rows(found)).toEqual([close([4 * 1.5, -6 * 0.1]), [1, 1], [2, 2]]);
    expect(metrics).toEqual({
      kl: 7,
      "staleness/mean": 1,
      "importance/mean": expect.closeTo(0.8, 12) as number,
      "importance/clipped": 0,
    });
    const beyond = weighStaleAdvantages(clipped, [scored(turn, [0.95, 1.5]), ...policies], {
      advantages: [[[1, 1]], ...advantages],
    });
    expect(rows(beyond.advantages)[0]).toEqual(close([1.9, 2]));
    expect(beyond.metrics!["importance/clipped"]).toBe(1 / 4);
  });

  it("changes nothing without trajectories of older weights", () => {
    const result = { advantages: [[[4, -6]]], metrics: { kl: 7 } };
    expect(weighStaleAdvantages([trajectory(turn)], [scored(turn, [0.1, 0.1])], result)).toBe(result);
    expect([isStale(trajectory(turn)), isStale(trajectory(turn, 0)), isStale(trajectory(turn, 1))]).toEqual([
      false,
      false,
      true,
    ]);
  });
});
