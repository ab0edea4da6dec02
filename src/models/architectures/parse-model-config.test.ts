import * as fc from "fast-check";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { LlamaGymError } from "../../core/errors.js";
import type { JsonObject, JsonValue } from "../../core/json.js";
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
    const copy: Record<string, JsonValue> = structuredClone(config);
    const rope = copy.rope_parameters as Record<string, JsonValue> | undefined;
    const target = inside && rope !== undefined ? rope : copy;
    const fields = Object.keys(target);
    const chosen = fields[field % fields.length];
    if (value === undefined) delete target[chosen];
    else target[chosen] = value as JsonValue;
    return copy;
  });

/**
 * What parseModelConfig makes of a config: a network of sound sizes, or one error that says where
 * to look.
 */
function outcome(json: JsonObject): string {
  try {
    const config = parseModelConfig(json, "config.json");
    const sizes = [...parameterShapes(config).values()].flat();
    const sound = sizes.every((size) => Number.isSafeInteger(size) && size > 0);
    const turns = config.ropes.every(({ theta, rotaryDim }) => Number.isFinite(theta) && rotaryDim > 0);
    return sound && turns ? "as it should be" : "a network that cannot be";
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    const told = ["FILE_CORRUPT", "MODEL_UNSUPPORTED"].includes(error.code) && error.message.includes("config.json");
    return told && error.message.length < 600 ? "as it should be" : error.message;
  }
}

describe("parseModelConfig", () => {
  it("returns a network or one LlamaGymError for any field value", () => {
    const property = fc.property(mutated, (json) => {
      expect(outcome(json)).toBe("as it should be");
    });
    fc.assert(property, { numRuns: 3000 });
  });
});
