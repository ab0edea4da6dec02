import { describe, expect, it } from "vitest";
import { toLinearLoss } from "./linear-loss.js";
import { readTargets, toData, unpackSequences } from "./token-sequences.js";

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
        targets: [
          { position: 4, token: 5, index: 0 },
          { position: 2, token: 3, index: 1 },
        ],
      },
      { tokens: [1, 2, 3, 6], targets: [{ position: 3, token: 6, index: 2 }] },
    ]);
  });

  it("adds the token after a row, and a sequence for each alternative to a token", () => {
    const selected = [
      { group: 0, row: 0, index: 2, target: 7 },
      { group: 0, row: 0, index: 2, target: 8 },
      { group: 0, row: 0, index: 0, target: 9 },
    ];
    expect(unpackSequences({ groups, selected })).toEqual([
      { tokens: [1, 2, 3, 4, 5, 7], targets: [{ position: 5, token: 7, index: 0 }] },
      { tokens: [1, 2, 3, 4, 5, 8], targets: [{ position: 5, token: 8, index: 1 }] },
      { tokens: [1, 2, 3, 9], targets: [{ position: 3, token: 9, index: 2 }] },
    ]);
    expect(unpackSequences({ groups, selected }, "dense")).toEqual([
      {
        tokens: [1, 2, 3, 4, 5, 7],
        targets: [
          { position: 5, token: 7, index: 0 },
          { position: 5, token: 8, index: 1 },
          { position: 3, token: 9, index: 2 },
        ],
      },
    ]);
  });

  it("copies a row for tokens that are selected again", () => {
    const selected = [0, 1, 0, 1].map((index) => ({ group: 0, row: 0, index }));
    const targets = (first: number) => [
      { position: 3, token: 4, index: first },
      { position: 4, token: 5, index: first + 1 },
    ];
    const tokens = [1, 2, 3, 4, 5];
    expect(unpackSequences({ groups, selected })).toEqual([
      { tokens, targets: targets(0) },
      { tokens, targets: targets(2) },
    ]);
  });

  it("ends a sequence at its last selected token", () => {
    const selected = [{ group: 0, row: 0, index: 0 }];
    expect(unpackSequences({ groups, selected })[0].tokens).toEqual([1, 2, 3, 4]);
  });
});

describe("toData", () => {
  it("shifts targets by one token, and has inputs at selected ones", () => {
    const sequences = [{ tokens: [1, 2, 3], targets: [{ position: 2, token: 3, index: 5 }] }];
    const [{ tokens, lossFnInputs }] = toData(sequences, { weights: (i) => 10 * i });
    expect(tokens).toEqual([1, 2]);
    expect(lossFnInputs.target_tokens).toMatchObject({ dtype: "int64", shape: [2], data: [2, 3] });
    expect(lossFnInputs.weights.data).toEqual(Float32Array.of(0, 50));
  });

  it("has a matrix of targets where a position has several, and lists its cells where that is smaller", () => {
    const tokens = Array.from({ length: 9 }, (_, i) => i);
    const targets = [8, 20, 21].map((token, index) => ({ position: 8, token, index }));
    const [dense] = toData([{ tokens, targets }], { weights: (i) => 1 + i }, "dense");
    expect(dense.lossFnInputs.target_tokens.shape).toEqual([8, 3]);
    expect(Array.from(dense.lossFnInputs.target_tokens.data)).toEqual([
      ...[1, 2, 3, 4, 5, 6, 7].flatMap((token) => [token, token, token]),
      8,
      20,
      21,
    ]);
    expect(Array.from(dense.lossFnInputs.weights.data)).toEqual([...Array.from({ length: 21 }, () => 0), 1, 2, 3]);
    const [sparse] = toData([{ tokens, targets }], { weights: (i) => 1 + i }, "sparse");
    expect(sparse.lossFnInputs.target_tokens).toEqual({
      dtype: "int64",
      shape: [8, 3],
      data: [8, 20, 21],
      sparse: { crow: [0, 0, 0, 0, 0, 0, 0, 0, 3], col: [0, 1, 2] },
    });
    expect(readTargets([{ tokens, targets }], [dense.lossFnInputs.weights], 3)).toEqual(Float32Array.of(1, 2, 3));
    expect(readTargets([{ tokens, targets }], [undefined], 3)).toBeUndefined();
  });
});

describe("toLinearLoss", () => {
  const gradient = [
    {
      sequences: [
        {
          tokens: [1, 2, 3, 4],
          targets: [
            { position: 3, token: 4, index: 0 },
            { position: 1, token: 2, index: 1 },
          ],
        },
        { tokens: [1, 2], targets: [{ position: 1, token: 2, index: 2 }] },
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
