import { z } from "zod";
import { errorMessage, invalidArgument } from "../../core/errors.js";
import { formatMember } from "./format-member.js";
import { sampleJson } from "./sample-json.js";
import { formatValue, Space } from "./space.js";
/** Draws after which `sample` gives up on a schema whose refinements reject them all. */
const MAX_DRAWS = 1000;
/**
 * JSON values of a schema. Their texts constrain a language model's completions: those of a `z.enum` of strings are the choices
 * themselves, those of every other schema are JSON.
 */
export class SchemaSpace extends Space {
    /** The texts of an enumeration of strings; undefined for other schemas. */
    choices;
    jsonSchema;
    validator;
    /** @throws INVALID_ARGUMENT for a schema that JSON cannot express, such as one with a transform. */
    constructor(schema) {
        super();
        try {
            const isZod = schema instanceof z.ZodType;
            this.jsonSchema = isZod ? withoutDialect(z.toJSONSchema(schema)) : schema;
            this.validator = isZod ? schema : z.fromJSONSchema(schema);
        }
        catch (error) {
            throw invalidArgument(`A SchemaSpace needs a zod schema of plain JSON values or a JSON schema: ${errorMessage(error)}`);
        }
        const { enum: values, const: constant } = this.jsonSchema;
        const options = Array.isArray(values)
            ? values
            : constant === undefined
                ? undefined
                : [constant];
        if (options?.every((option) => typeof option === "string") === true)
            this.choices = options;
    }
    /** Reads a completion's value; undefined if it is not in the space. */
    parse(text) {
        const { data, success } = this.validator.safeParse(this.choices === undefined ? parseJson(text) : text.trim());
        return success ? data : undefined;
    }
    /** Formats a value as a completion, as constrained decoding writes it. */
    format(value) {
        return this.choices === undefined ? formatMember(value, this.jsonSchema) : String(value);
    }
    /** Draws a value: enumerations, bounded integers and booleans uniformly, other types from a few simple values. */
    sample(options) {
        this.rejectMask(options);
        for (let draw = 0; draw < MAX_DRAWS; draw++) {
            const { data, success } = this.validator.safeParse(sampleJson(this.jsonSchema, this.random));
            if (success)
                return data;
        }
        throw invalidArgument(`${MAX_DRAWS} random values were all rejected by the schema ${this.toString()}.`);
    }
    contains(value) {
        return this.validator.safeParse(value).success;
    }
    encode(value) {
        return value;
    }
    decode(json) {
        return this.checkMember(json);
    }
    toString() {
        return `Schema(${formatValue(this.jsonSchema)})`;
    }
    equals(other) {
        return other instanceof SchemaSpace && JSON.stringify(this.jsonSchema) === JSON.stringify(other.jsonSchema);
    }
}
function withoutDialect({ $schema: _dialect, ...schema }) {
    return schema;
}
function parseJson(text) {
    try {
        return JSON.parse(text);
    }
    catch {
        return undefined;
    }
}
