import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { groupRelativeAdvantages, type EpisodeReturns, type GroupBaselineConfig } from "./group-relative-advantages.js";

const usual: GroupBaselineConfig = {
  grouping: "start",
  baseline: "step",
  scaleRewards: "group",
  returns: "return-to-go",
};

const episodes: readonly EpisodeReturns[] = [
  { returns: [4, 1], group: 0, states: ["s", "a"] },
  { returns: [2], group: 0, states: ["s"] },
  { returns: [9, 3, 5], group: 1, states: ["s", "b", "a"] },
  { returns: [1, 7], group: 1, states: ["t", "b"] },
];

const compare = (config: Partial<GroupBaselineConfig>) =>
  groupRelativeAdvantages(episodes, { ...usual, ...config }).map((row) => [...row]);

const close = (rows: readonly (readonly number[])[]) =>
  rows.map((row) => row.map((value) => expect.closeTo(value, 9) as number));

describe("groupRelativeAdvantages", () => {
  it("compares turns of one step and group by default: (return - mean) / (std + 1e-4)", () => {
    const returns = fc.array(fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 1, maxLength: 4 }), {
      minLength: 1,
      maxLength: 6,
    });
    const standardScore = (value: number, column: readonly number[]) => {
      const center = column.reduce((sum, other) => sum + other, 0) / column.length;
      const squares = column.reduce((sum, other) => sum + (other - center) ** 2, 0);
      return (value - center) / (Math.sqrt(squares / Math.max(1, column.length - 1)) + 1e-4);
    };
    fc.assert(
      fc.property(returns, (rows) => {
        const found = groupRelativeAdvantages(
          rows.map((own) => ({ returns: own, group: 3 })),
          usual,
        );
        rows.forEach((row, i) =>
          row.forEach((value, t) => {
            const column = rows.flatMap((other) => other[t] ?? []);
            expect(found[i][t]).toBeCloseTo(standardScore(value, column), 9);
          }),
        );
      }),
    );
  });

  it("subtracts the configured mean", () => {
    const none = { scaleRewards: "none" } as const;
    expect(compare({ ...none, baseline: "step" })).toEqual(close([[1, 0], [-1], [4, -2, 0], [-4, 2]]));
    const [first, second] = [7 / 3, 5];
    expect(compare({ ...none, baseline: "group" })).toEqual(
      close([[4 - first, 1 - first], [2 - first], [9 - second, 3 - second, 0], [1 - second, 7 - second]]),
    );
    expect(compare({ ...none, baseline: "batch" })).toEqual(close([[0, -3], [-2], [5, -1, 1], [-3, 3]]));
    expect(compare({ ...none, baseline: "none" })).toEqual(close([[4, 1], [2], [9, 3, 5], [1, 7]]));
  });

  it("groups the whole update, or turns with the same observation", () => {
    const none = { scaleRewards: "none" } as const;
    expect(compare({ ...none, grouping: "batch" })).toEqual(
      close([[0, 1 - 11 / 3], [-2], [5, 3 - 11 / 3, 0], [-3, 7 - 11 / 3]]),
    );
    // s: 4, 2, 9; a: 1, 5; b: 3, 7; t alone.
    expect(compare({ ...none, grouping: "observation", baseline: "group" })).toEqual(
      close([[-1, -2], [-3], [4, -2, 2], [0, 2]]),
    );
  });

  it("divides by the deviation of the compared turns, or of the update", () => {
    expect(compare({})[0][0]).toBeCloseTo(1 / (Math.SQRT2 + 1e-4), 9);
    const all = [4, 1, 2, 9, 3, 5, 1, 7];
    const std = Math.sqrt(all.reduce((sum, x) => sum + (x - 4) ** 2, 0) / 7);
    expect(compare({ scaleRewards: "batch" })[0][0]).toBeCloseTo(1 / (std + 1e-4), 9);
  });

  it("counts an episode once with episode returns", () => {
    const alike = [
      { returns: [4, 4, 4, 4], group: 0 },
      { returns: [2], group: 0 },
    ];
    const config: GroupBaselineConfig = {
      ...usual,
      baseline: "group",
      returns: "episode-return",
      scaleRewards: "none",
    };
    expect(groupRelativeAdvantages(alike, config).map((row) => [...row])).toEqual([[1, 1, 1, 1], [-1]]);
    const scaled = groupRelativeAdvantages([...alike, { returns: [9, 9], group: 1 }], {
      ...config,
      scaleRewards: "batch",
    });
    expect(scaled[0][0]).toBeCloseTo(1 / (Math.sqrt((1 + 9 + 16) / 2) + 1e-4), 12);
  });

  it("gives 0 to a turn without others, and to an unknown return", () => {
    const [known, unknown, other] = groupRelativeAdvantages(
      [
        { returns: [1], group: 0 },
        { returns: [Number.NaN], group: 0 },
        { returns: [5], group: 1 },
      ],
      usual,
    );
    expect([...known, ...unknown, ...other]).toEqual([0, 0, 0]);
  });
});
