import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packSequences } from "./sequence-batch.js";
import { CausalLM } from "../causal-lm.js";
import { ScoringGraph } from "./training-graph.js";

/** LongRoPE with an original length of 4. */
const folder = fileURLToPath(new URL("../../../test/fixtures/models/phi3", import.meta.url));

let model: CausalLM;
let scoring: ScoringGraph;

beforeAll(async () => {
  model = await CausalLM.open(folder, { device: "cpu", threads: 1 });
  scoring = await ScoringGraph.create(model);
});

afterAll(async () => {
  await model.close();
});

describe("packSequences", () => {
  it("scores each row of a group as on its own, also if lengths change rotary frequencies", async () => {
    const prefix = [3, 7];
    const rows = [[1], [20, 5, 5, 9, 2], [1, 4], []];
    const selected = rows.flatMap((tokens, row) => tokens.map((_, index) => ({ group: 1, row, index })));
    const other = { prefix: [2, 2, 2], rows: [[8, 8]] };
    const { logProbs } = await scoring.run({ groups: [other, { prefix, rows }], selected });
    for (const [i, { row, index }] of selected.entries()) {
      const alone = await scoring.run({
        groups: [{ prefix: [], rows: [[...prefix, ...rows[row]]] }],
        selected: [{ group: 0, row: 0, index: prefix.length + index }],
      });
      expect(logProbs[i]).toBeCloseTo(alone.logProbs[0], 5);
    }
  });

  it("scores a token within the prefix of a row", async () => {
    const [prefix, rows] = [
      [3, 7, 9],
      [[1, 4], [20]],
    ];
    const selected = [-2, -1, 0].map((index) => ({ group: 0, row: 1, index }));
    const { logProbs } = await scoring.run({ groups: [{ prefix, rows }], selected });
    const alone = await scoring.run({
      groups: [{ prefix: [], rows: [[...prefix, ...rows[1]]] }],
      selected: [1, 2, 3].map((index) => ({ group: 0, row: 0, index })),
    });
    logProbs.forEach((value, i) => expect(value).toBeCloseTo(alone.logProbs[i], 5));
    const first = [{ group: 0, row: 1, index: -3 }];
    await expect(scoring.run({ groups: [{ prefix, rows }], selected: first })).rejects.toThrow(
      "has no log-probability",
    );
  });

  it.each([
    ["once", [9, 9, 1], 2],
    // Batched with longer sequences, one of four tokens has its own rotary frequencies.
    ["for each group where frequencies differ", [9, 9], 1],
  ])("computes what all prefixes begin with %s, and scores tokens in it and behind it", async (_, row, root) => {
    const groups = [
      { prefix: [3, 7, 9, 2], rows: [[1, 4], [20]] },
      { prefix: [3, 7], rows: [row] },
      { prefix: [3, 7, 4, 5, 5], rows: [[8], [], [6, 6]] },
    ];
    expect(packSequences(model.config, groups).feeds.common_prefix_positions.data).toHaveLength(root);
    const sequences = groups.flatMap(({ prefix, rows }, group) =>
      rows.map((row, number) => ({ group, row: number, prefix: prefix.length, tokens: [...prefix, ...row] })),
    );
    const places = sequences.flatMap(({ group, row, prefix, tokens }) =>
      tokens.slice(1).map((_, i) => ({ group, row, index: i + 1 - prefix })),
    );
    const { logProbs } = await scoring.run({ groups, selected: places });
    const expected: number[] = [];
    for (const { tokens } of sequences) {
      const selected = tokens.slice(1).map((_, i) => ({ group: 0, row: 0, index: i + 1 }));
      expected.push(...(await scoring.run({ groups: [{ prefix: [], rows: [tokens] }], selected })).logProbs);
    }
    logProbs.forEach((value, i) => expect(value).toBeCloseTo(expected[i], 5));
    const first = [{ group: 2, row: 0, index: -5 }];
    await expect(scoring.run({ groups, selected: first })).rejects.toThrow("has no log-probability");
  });

  it("rejects a token outside the vocabulary", async () => {
    const { vocabSize } = model.config;
    const batch = { groups: [{ prefix: [], rows: [[1, vocabSize]] }], selected: [{ group: 0, row: 0, index: 1 }] };
    await expect(scoring.run(batch)).rejects.toThrow(`from 0 to ${vocabSize - 1}, got ${vocabSize}.`);
  });
});
