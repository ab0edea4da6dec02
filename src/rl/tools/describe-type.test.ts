import { expect, it } from "vitest";
import { parseLosslessJson } from "../../core/lossless-json.js";
import { describeType } from "./describe-type.js";

it.each([
  [
    '{"type": "object", "properties": {"order": {"type": "integer", "minimum": 1, "maximum": 99}}, "required": ["order"]}',
    '{"order": integer from 1 to 99}',
  ],
  [
    '{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}, "required": ["b"], "additionalProperties": false}',
    '{"a"?: string, "b": boolean}',
  ],
  ['{"properties": {"why": {"enum": ["late", "broken", null]}}}', '{"why"?: "late", "broken" or null}'],
  ['{"type": "array", "items": {"type": "number", "minimum": 0.5}}', "[number of at least 0.5, ...]"],
  ['{"type": ["string", "null"]}', "string or null"],
  ['{"type": "integer", "maximum": 12345678901234567890}', "integer of at most 12345678901234567890"],
  ['{"const": 10.0}', "10.0"],
  ['{"anyOf": [{"type": "string"}, {"type": "null"}], "description": "a note"}', "string or null (a note)"],
  ['{"type": "string", "description": "Name of the city"}', "string (Name of the city)"],
  [
    '{"type": "object", "properties": {"2": {"type": "string"}, "1": {"type": "string"}}}',
    '{"2"?: string, "1"?: string}',
  ],
  ['{"type": "object", "properties": {}, "required": ["x"]}', '{"x": any JSON}'],
  ['{"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}}', "{any name: integer}"],
  ['{"type": "object"}', "object"],
  ["{}", "any JSON"],
  ["true", "any JSON"],
  ["false", "nothing"],
  // What has no words is described by its schema, so that nothing is left out.
  ['{"type": "string", "pattern": "^a+$"}', '{"type":"string","pattern":"^a+$"}'],
  [
    '{"$schema": "https://json-schema.org/draft/2020-12/schema", "oneOf": [{"type": "string"}]}',
    '{"oneOf":[{"type":"string"}]}',
  ],
  ['{"anyOf": [{"type": "integer"}], "minimum": 3}', '{"anyOf":[{"type":"integer"}],"minimum":3}'],
])("describes %s", (schema, description) => {
  expect(describeType(parseLosslessJson(schema))).toBe(description);
});
