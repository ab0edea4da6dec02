import fc from "fast-check";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { LlamaGymError } from "../../errors.js";
import type { JsonObject, JsonValue } from "../../files/json.js";
import { parameterShapes, parseModelConfig } from "./index.js";

const fixture = new URL("../../../test/fixtures/models/architectures.json", import.meta.url);
const configs = (JSON.parse(readFileSync(fixture, "utf8")) as { config: JsonObject }[]).map(({ config }) => config);

/** A value somewhere in a config replaced by any other, or removed. */
const mutated = fc
  .record({
    config: fc.constantFrom(...configs),
    field: fc.nat(),
    inside: fc.boolean(),
    value: fc.option(fc.jsonValue({ maxDepth: 2 }), { nil: undefined }),
  })
  .map(({ config, field, inside, value }) => {
    const copy = structuredClone(config);
    const rope = copy.rope_parameters as JsonObject | undefined;
    const target = inside && rope !== undefined ? rope : copy;
    const fields = Object.keys(target);
    const chosen = fields[field % fields.length];
    if (value === undefined) delete target[chosen];
    else target[chosen] = value as JsonValue;
    return copy;
  });

describe("parseModelConfig", () => {
  it("gives a whole network or one LlamaGymError for any field's value", () => {
    const property = fc.property(mutated, (json) => {
      try {
        const config = parseModelConfig(json, "config.json");
        for (const shape of parameterShapes(config).values()) {
          expect(shape.every((size) => Number.isSafeInteger(size) && size > 0)).toBe(true);
        }
        for (const { theta, rotaryDim } of config.ropes) expect(Number.isFinite(theta) && rotaryDim > 0).toBe(true);
      } catch (error) {
        if (!(error instanceof LlamaGymError)) throw error;
        expect(["FILE_CORRUPT", "MODEL_UNSUPPORTED"]).toContain(error.code);
        expect(error.message).toContain("config.json");
        expect(error.message.length).toBeLessThan(600);
      }
    });
    fc.assert(property, { numRuns: 3000 });
  });
});
