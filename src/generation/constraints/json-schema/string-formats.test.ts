import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  createPatternConstraint,
  sampleRandomTokens,
  createVocabulary,
} from "../../../../test/support/constrained-sampling.js";
import { createTestTokenizer } from "../../../../test/support/text.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import { DEAD_STATE } from "../automaton/byte-automaton.js";
import { compileToByteAutomaton } from "../output-constraint.js";
import type { JsonSchema } from "./keywords.js";

const tokenizer = createTestTokenizer("gpt2");
const vocabulary = createVocabulary(tokenizer);

/** Returns a function that checks whether a text is a value of a schema. */
function reader(schema: JsonSchema): (text: string) => boolean {
  const automaton = compileToByteAutomaton({ jsonSchema: schema });
  return (text) => {
    const state = automaton.walk(0, Buffer.from(text));
    return state !== DEAD_STATE && automaton.accepting[state] === 1;
  };
}

/** Samples texts of a schema. */
function texts(schema: JsonSchema, count: number, maxNewTokens = 60): string[] {
  const constraint = createPatternConstraint(vocabulary, { jsonSchema: schema }, { maxNewTokens });
  const random = new RandomStream(1);
  return Array.from({ length: count }, () =>
    tokenizer.decode(sampleRandomTokens(constraint, random), { skipSpecialTokens: true }),
  );
}

/** Returns a function that validates values with zod, an independent implementation. */
function validator(schema: JsonSchema): (value: unknown) => boolean {
  const type = z.fromJSONSchema(schema);
  return (value) => type.safeParse(value).success;
}

describe("string formats", () => {
  it.each<[string, z.ZodType]>([
    ["email", z.email()],
    ["uuid", z.uuid()],
    ["url", z.url()],
    ["hostname", z.hostname()],
    ["date", z.iso.date()],
    ["datetime", z.iso.datetime({ offset: true })],
    ["ipv4", z.ipv4()],
    ["ipv6", z.ipv6()],
    ["tuple", z.tuple([z.enum(["a", "b"]), z.int()])],
    ["tuple with a rest", z.tuple([z.null()]).rest(z.boolean())],
    ["optional tuple items", z.tuple([z.null(), z.boolean().optional(), z.boolean().optional()])],
    ["record", z.record(z.string(), z.int())],
    ["record of names", z.record(z.enum(["x", "y"]), z.boolean())],
    ["partial record", z.partialRecord(z.enum(["x", "y"]), z.boolean())],
    ["record of a pattern", z.record(z.string().regex(/^[a-z]{1,3}$/), z.null())],
    [
      "discriminated union",
      z.discriminatedUnion("type", [
        z.object({ type: z.literal("a"), x: z.boolean() }),
        z.object({ type: z.enum(["b", "c"]) }),
      ]),
    ],
    ["multiples", z.int().multipleOf(7)],
    ["multiples of a number", z.number().multipleOf(12)],
    ["positive multiples", z.int().positive().multipleOf(25)],
    ["few multiples", z.int().min(-100).max(100).multipleOf(30)],
    ["object that allows others", z.looseObject({ a: z.null() })],
  ])("generates values of zod's %s", (_, type) => {
    for (const text of texts(z.toJSONSchema(type), 50, 200)) {
      expect([text, type.safeParse(JSON.parse(text)).success]).toEqual([text, true]);
    }
  });

  it.each(["date", "date-time", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"])(
    "generates the format %s",
    (format) => {
      const isValid = validator({ type: "string", format });
      for (const text of texts({ type: "string", format }, 50, 200)) {
        expect([text, isValid(JSON.parse(text))]).toEqual([text, true]);
      }
    },
  );

  it("matches known texts of each format", () => {
    const examples = {
      date: ["2024-02-28", "1999-12-31"],
      time: ["23:59:59Z", "00:00:00.5+01:00"],
      "date-time": ["2024-02-28T12:00:00Z"],
      email: ["a.b@example.com"],
      hostname: ["localhost", "a-b.example.org"],
      ipv4: ["127.0.0.1", "255.255.255.255"],
      ipv6: ["::1", "::", "fe80::1", "2001:db8:0:0:0:0:0:1", "1::"],
      uri: ["https://example.com", "http://localhost:8080/a%20b?q=1#top"],
      uuid: ["123e4567-e89b-12d3-a456-426614174000"],
    };
    for (const [format, values] of Object.entries(examples)) {
      const has = reader({ type: "string", format });
      expect(values.filter((value) => !has(JSON.stringify(value)))).toEqual([]);
      expect(
        ["", "x y", "300.1.1.1", "2024/02/28", "25:00:00Z", ":::"].filter((text) => has(JSON.stringify(text))),
      ).toEqual([]);
    }
  });

  it("accepts only valid days of each month", () => {
    const has = reader({ type: "string", format: "date" });
    expect(
      ["2023-02-29", "2023-02-30", "2023-04-31", "2023-13-01", "2023-01-00"].filter((day) => has(`"${day}"`)),
    ).toEqual([]);
  });
});
