import { describe, expect, it } from "vitest";
import { toLinearLoss } from "./linear-loss.js";
import { toData, unpackSequences } from "./token-sequences.js";

const groups = [{ prefix: [1, 2, 3], rows: [[4, 5], [6]] }];

describe("unpackSequences", () => {
  it("has the selected tokens of a row in one sequence, and those of its prefix", () => {
    const selected = [
      { group: 0, row: 0, index: 1 },
      { group: 0, row: 0, index: -1 },
      { group: 0, row: 1, index: 0, target: 6 },
    ];
    expect(unpackSequences({ groups, selected })).toEqual([
      {
        tokens: [1, 2, 3, 4, 5],
        selected: new Map([
          [4, 0],
          [2, 1],
        ]),
      },
      { tokens: [1, 2, 3, 6], selected: new Map([[3, 2]]) },
    ]);
  });

  it("adds the token after a row, and a sequence for each alternative to a token", () => {
    const selected = [
      { group: 0, row: 0, index: 2, target: 7 },
      { group: 0, row: 0, index: 2, target: 8 },
      { group: 0, row: 0, index: 0, target: 9 },
    ];
    expect(unpackSequences({ groups, selected })).toEqual([
      { tokens: [1, 2, 3, 4, 5, 7], selected: new Map([[5, 0]]) },
      { tokens: [1, 2, 3, 4, 5, 8], selected: new Map([[5, 1]]) },
      { tokens: [1, 2, 3, 9], selected: new Map([[3, 2]]) },
    ]);
  });

  it("ends a sequence at its last selected token", () => {
    const selected = [{ group: 0, row: 0, index: 0 }];
    expect(unpackSequences({ groups, selected })[0].tokens).toEqual([1, 2, 3, 4]);
  });
});

describe("toData", () => {
  it("shifts targets by one token, and has inputs at selected ones", () => {
    const sequences = [{ tokens: [1, 2, 3], selected: new Map([[2, 5]]) }];
    const [{ tokens, lossFnInputs }] = toData(sequences, { weights: (i) => 10 * i });
    expect(tokens).toEqual([1, 2]);
    expect(lossFnInputs.target_tokens).toMatchObject({ dtype: "int64", shape: [2], data: [2, 3] });
    expect(lossFnInputs.weights.data).toEqual(Float32Array.of(0, 50));
  });
});

describe("toLinearLoss", () => {
  const gradient = [
    {
      sequences: [
        {
          tokens: [1, 2, 3, 4],
          selected: new Map([
            [3, 0],
            [1, 1],
          ]),
        },
        { tokens: [1, 2], selected: new Map([[1, 2]]) },
      ],
      logProbs: Float32Array.of(-1, -2, -3),
      weights: Float32Array.of(0.5, -0.25, 2),
    },
  ];

  it("weighs log-probabilities at a service that sums", () => {
    const { lossFn, data } = toLinearLoss(gradient, false);
    expect(lossFn).toBe("cross_entropy");
    expect(data.map(({ lossFnInputs }) => lossFnInputs.weights.data)).toEqual([
      Float32Array.of(-0.25, 0, 0.5),
      Float32Array.of(2),
    ]);
  });

  it("undoes the means of a service that averages over the tokens of a sequence and over sequences", () => {
    const { lossFn, data } = toLinearLoss(gradient, true);
    expect(lossFn).toBe("importance_sampling");
    const means = data.map(({ lossFnInputs: { advantages } }) =>
      Array.from(advantages.data, (value) => value / advantages.data.length / data.length),
    );
    expect(means).toEqual([[-0.25, 0, 0.5], [2]]);
    expect(data.map(({ lossFnInputs }) => lossFnInputs.logprobs.data)).toEqual([
      Float32Array.of(-2, 0, -1),
      Float32Array.of(-3),
    ]);
  });
});
