import { z } from "zod";
import { errorMessage, invalidArgument } from "../../core/errors.js";
import type { JsonObject, JsonValue } from "../../core/json.js";
import { formatMember } from "./format-member.js";
import { sampleJson } from "./sample-json.js";
import type { PlainJsonSchema } from "./schema-references.js";
import { formatValue, Space, type SampleOptions } from "./space.js";

/** Values as a zod schema, or as a JSON schema (draft 2020-12). */
export type ValueSchema<Value> = z.ZodType<Value> | PlainJsonSchema;

/** Draws after which `sample` gives up on a schema whose refinements reject them all. */
const MAX_DRAWS = 1000;

/**
 * JSON values of a schema. Their texts constrain a language model's completions: those of a
 * `z.enum` of strings are the choices themselves, those of every other schema are JSON.
 */
export class SchemaSpace<Value = unknown> extends Space<Value> {
  /** The texts of an enumeration of strings; undefined for other schemas. */
  readonly choices: readonly string[] | undefined;
  readonly jsonSchema: PlainJsonSchema;
  private readonly validator: z.ZodType<Value>;

  /**
   * @throws INVALID_ARGUMENT for a schema that JSON cannot express, such as one with a transform.
   */
  constructor(schema: ValueSchema<Value>) {
    super();
    try {
      const isZod = schema instanceof z.ZodType;
      this.jsonSchema = isZod ? withoutDialect(z.toJSONSchema(schema)) : schema;
      this.validator = isZod ? schema : (z.fromJSONSchema(schema) as z.ZodType<Value>);
    } catch (error) {
      throw invalidArgument(
        `A SchemaSpace needs a zod schema of plain JSON values or a JSON schema: ${errorMessage(error)}`,
      );
    }
    const { enum: values, const: constant } = this.jsonSchema;
    const options: unknown[] | undefined = Array.isArray(values)
      ? values
      : constant === undefined
        ? undefined
        : [constant];
    if (options?.every((option) => typeof option === "string") === true) this.choices = options;
  }

  /** Reads a completion's value; undefined if it is not in the space. */
  parse(text: string): Value | undefined {
    const { data, success } = this.validator.safeParse(this.choices === undefined ? parseJson(text) : text.trim());
    return success ? data : undefined;
  }

  /** Formats a value as a completion, as constrained decoding writes it. */
  format(value: Value): string {
    return this.choices === undefined ? formatMember(value as JsonValue, this.jsonSchema as JsonObject) : String(value);
  }

  /**
   * Draws a value: enumerations, bounded integers and booleans uniformly, other types from a few
   * simple values.
   */
  override sample(options?: SampleOptions): Value {
    this.rejectMask(options);
    for (let draw = 0; draw < MAX_DRAWS; draw++) {
      const { data, success } = this.validator.safeParse(sampleJson(this.jsonSchema as JsonObject, this.random));
      if (success) return data;
    }
    throw invalidArgument(`${MAX_DRAWS} random values were all rejected by the schema ${this.toString()}.`);
  }

  override contains(value: unknown): value is Value {
    return this.validator.safeParse(value).success;
  }

  override encode(value: Value): JsonValue {
    return value as JsonValue;
  }

  override decode(json: JsonValue): Value {
    return this.checkMember(json);
  }

  override toString(): string {
    return `Schema(${formatValue(this.jsonSchema)})`;
  }

  override equals(other: Space): boolean {
    return other instanceof SchemaSpace && JSON.stringify(this.jsonSchema) === JSON.stringify(other.jsonSchema);
  }
}

function withoutDialect({ $schema: _dialect, ...schema }: PlainJsonSchema): PlainJsonSchema {
  return schema;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
