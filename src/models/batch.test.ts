import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CausalLM } from "./causal-lm.js";
import { ScoringGraph } from "./training-graph.js";

/** LongRoPE with an original length of 4. */
const folder = fileURLToPath(new URL("../../test/fixtures/models/phi3", import.meta.url));

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
  it("scores each row of a group as it is scored by itself, also where lengths change rotary frequencies", async () => {
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

  it("scores a token within the prefix, in a row that reads it", async () => {
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
      "nothing comes before it",
    );
  });

  it("names a token that the model does not have", async () => {
    const { vocabSize } = model.config;
    const batch = { groups: [{ prefix: [], rows: [[1, vocabSize]] }], selected: [{ group: 0, row: 0, index: 1 }] };
    await expect(scoring.run(batch)).rejects.toThrow(`Token ${vocabSize} is not one of the model's ${vocabSize}`);
  });
});
