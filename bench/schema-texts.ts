import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv, type ValidateFunction } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { RandomStream } from "../src/core/random/random-stream.js";
import type { JsonSchema } from "../src/generation/constraints/json-schema/keywords.js";
import { randomTextsOf } from "../test/support/random-texts.js";

/** Formats of JSON Schema that ajv-formats checks. */
const FORMATS = ["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri"] as const;
const MORE_FORMATS = [
  "uri-reference",
  "uri-template",
  "uuid",
  "json-pointer",
  "relative-json-pointer",
  "regex",
] as const;

/**
 * Writes about `count` random texts of the schemas of a folder, as many of each, and counts those
 * that ajv finds invalid.
 */
export function checkTexts(folder: string, count: number): string {
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  const random = new RandomStream(1);
  const perSchema = Math.ceil(count / files.length);
  let [schemas, texts, invalid] = [0, 0, 0];
  for (const name of files) {
    const { schema } = JSON.parse(readFileSync(join(folder, name), "utf8")) as { schema: JsonSchema };
    const write = attempt(() => randomTextsOf(schema, random));
    const isValid = write && attempt(() => compileValidator(schema));
    if (write === undefined || isValid === undefined) continue;
    schemas++;
    for (let i = 0; i < perSchema; i++) {
      texts++;
      const text = write();
      if (isValid(JSON.parse(text)) === true) continue;
      invalid++;
      console.log(`${name}\t${text.slice(0, 200)}\t${JSON.stringify(isValid.errors?.[0])}`);
    }
  }
  return `${texts} random texts of ${schemas} schemas that ajv compiles too: ${invalid} invalid`;
}

/** Compiles a schema of any draft for ajv, which knows none of draft 4. */
function compileValidator(schema: JsonSchema): ValidateFunction {
  const dialect = String(schema.$schema);
  const Validator = dialect.includes("2020") ? Ajv2020 : dialect.includes("2019") ? Ajv2019 : Ajv;
  const ajv = new Validator({ strict: false, logger: false, validateSchema: false, multipleOfPrecision: 6 });
  addFormats.default(ajv, [...FORMATS, ...MORE_FORMATS]);
  const { $schema: _dialect, id: _id, $async: _async, ...rest } = schema;
  return ajv.compile(rest);
}

function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
