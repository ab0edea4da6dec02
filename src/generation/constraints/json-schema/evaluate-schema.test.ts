import { expect, it } from "vitest";
import { SchemaEvaluator } from "./evaluate-schema.js";
import { SchemaDocument } from "./schema-document.js";
import { StringLanguages } from "./string-language.js";

it("reads an enum once, however many values are compared with it", () => {
  const values = Array.from({ length: 100 }, (_, i) => `v${i}`);
  let reads = 0;
  const counted = new Proxy(values, {
    get(target, key, receiver) {
      if (key === "0") reads++;
      return Reflect.get(target, key, receiver) as unknown;
    },
  });
  const evaluator = new SchemaEvaluator(new SchemaDocument({}), new StringLanguages());
  const term = { schema: { enum: counted }, path: "#", isNegated: false };
  expect(values.every((value) => evaluator.satisfies(value, term))).toBe(true);
  expect(evaluator.satisfies("v100", term)).toBe(false);
  expect(reads).toBe(1);
});
