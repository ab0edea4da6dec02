import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../core/json.js";
import { parseModelConfig } from "../../models/architectures/index.js";
import { maxRelativeError } from "../../../test/parity/parity-report.js";
import type { RopeConfig } from "./decoder-config.js";
import { computeRopeFrequencies, computeRopeTables } from "./rope.js";

interface RopeCase {
  name: string;
  config: JsonObject;
  positions: number[];
  sequence_length: number;
  cos: number[];
  sin: number[];
}

/** Computed by Transformers 5.23's rotary embeddings. */
const cases = JSON.parse(
  readFileSync(new URL("../../../test/fixtures/models/rope.json", import.meta.url), "utf8"),
) as RopeCase[];

describe("computeRopeTables", () => {
  it.each(cases)("matches Transformers' cos and sin: $name", ({ config, positions, sequence_length, cos, sin }) => {
    const tables = computeRopeTables(parseModelConfig(config, "config.json").ropes[0], positions, sequence_length);
    expect(maxRelativeError(tables.cos, cos)).toBeLessThan(1e-6);
    expect(maxRelativeError(tables.sin, sin)).toBeLessThan(1e-6);
  });

  it("is independent of earlier calls", () => {
    const rope = (): RopeConfig => ({ theta: 10_000, rotaryDim: 8, scaling: { kind: "default" } });
    const grown = rope();
    computeRopeTables(grown, [3], 4);
    computeRopeTables(grown, [300, 5], 301);
    const positions = [0, 700, 40_000, 3];
    expect(computeRopeTables(grown, positions, 40_001)).toEqual(computeRopeTables(rope(), positions, 40_001));
    expect(computeRopeTables(grown, [700], 701).cos).toEqual(
      computeRopeTables(rope(), positions, 40_001).cos.slice(4, 8),
    );
  });

  it("chooses each position's frequencies by its sequence's length", () => {
    const long = { kind: "longrope", shortFactor: [1, 2], longFactor: [4, 8], originalLength: 10, attentionFactor: 1 };
    const dynamic = { kind: "dynamic", factor: 2, originalLength: 10 };
    for (const scaling of [long, dynamic]) {
      const rope = { theta: 100, rotaryDim: 4, scaling } as RopeConfig;
      const [cos, ...alone] = [[20, 10, 9, 30], 20, 10, 9, 30].map(
        (of) => computeRopeTables(rope, [3, 3, 3, 3], of).cos,
      );
      expect([...cos]).toEqual(alone.flatMap((table) => [...table.subarray(0, 2)]));
      expect(alone[0]).not.toEqual(alone[1]);
    }
  });

  it("returns empty tables for no positions", () => {
    const tables = computeRopeTables({ theta: 10_000, rotaryDim: 8, scaling: { kind: "default" } }, [], 0);
    expect(tables.cos).toHaveLength(0);
  });
});

describe("computeRopeFrequencies", () => {
  it("switches LongRoPE to its long factors beyond the original length and back", () => {
    const scaling = {
      kind: "longrope",
      shortFactor: [1, 2],
      longFactor: [4, 8],
      originalLength: 10,
      attentionFactor: 1.5,
    };
    const rope = { theta: 100, rotaryDim: 4, scaling } as RopeConfig;
    // 1 / (factor * 100 ^ (2 i / 4))
    expect([...computeRopeFrequencies(rope, 10)]).toEqual([1, Math.fround(1 / 20)]);
    expect([...computeRopeFrequencies(rope, 11)]).toEqual([0.25, Math.fround(1 / 80)]);
    const [long, short] = [11, 10].map((length) => computeRopeTables(rope, [1], length).cos);
    expect(long[0]).toBeCloseTo(1.5 * Math.cos(0.25), 6);
    expect(short[0]).toBeCloseTo(1.5 * Math.cos(1), 6);
  });

  it("does not scale dynamically up to the original length", () => {
    const plain: RopeConfig = { theta: 10_000, rotaryDim: 8, scaling: { kind: "default" } };
    const dynamic: RopeConfig = { ...plain, scaling: { kind: "dynamic", factor: 4, originalLength: 32 } };
    expect(computeRopeFrequencies(dynamic, 32)).toEqual(computeRopeFrequencies(plain, 32));
    expect(computeRopeFrequencies(dynamic, 33)[3]).toBeLessThan(computeRopeFrequencies(plain, 33)[3]);
  });
});
