import { asJsonObject } from "../../core/json.js";
import { sampleJson } from "../spaces/sample-json.js";
import { resolveReferences, SchemaResolver } from "../spaces/schema-references.js";
import { Space } from "../spaces/space.js";
const TYPE_CHECKS = new Map([
    ["string", (value) => typeof value === "string"],
    ["number", (value) => typeof value === "number"],
    ["integer", Number.isInteger],
    ["boolean", (value) => typeof value === "boolean"],
    ["null", (value) => value === null],
    ["array", Array.isArray],
    ["object", (value) => asJsonObject(value) !== undefined],
]);
/**
 * Validates a value against a JSON Schema with the keywords type, enum, const, anyOf, oneOf, allOf, properties,
 * required, additionalProperties, items and bounds. Other keywords are ignored.
 */
function matchesSchema(value, schemaJson, resolver, depth = 0) {
    if (typeof schemaJson === "boolean")
        return schemaJson;
    if (value === undefined || typeof value === "function")
        return false;
    const schema = resolver.resolve(schemaJson, depth);
    const { type, const: constant, enum: allowed, anyOf, oneOf, allOf, items } = schema;
    const matches = (part) => matchesSchema(value, part, resolver, depth + 1);
    const isEqual = (candidate) => JSON.stringify(candidate) === JSON.stringify(value);
    if (type !== undefined && ![type].flat().some((name) => TYPE_CHECKS.get(name)?.(value) ?? true))
        return false;
    if (constant !== undefined && !isEqual(constant))
        return false;
    if (Array.isArray(allowed) && !allowed.some(isEqual))
        return false;
    if ([anyOf, oneOf].some((parts) => Array.isArray(parts) && !parts.some(matches)))
        return false;
    if (Array.isArray(allOf) && !allOf.every(matches))
        return false;
    if (typeof value === "number")
        return isInBounds(value, schema);
    if (typeof value === "string")
        return isWithin(Array.from(value).length, schema.minLength, schema.maxLength);
    if (Array.isArray(value)) {
        if (!isWithin(value.length, schema.minItems, schema.maxItems))
            return false;
        return items === undefined || value.every((item) => matchesSchema(item, items, resolver, depth + 1));
    }
    const fields = asJsonObject(value);
    if (fields === undefined)
        return true;
    const required = Array.isArray(schema.required) ? schema.required : [];
    if (!required.every((name) => Object.hasOwn(fields, name)))
        return false;
    const properties = asJsonObject(schema.properties) ?? {};
    return Object.entries(fields).every(([name, field]) => {
        const part = Object.hasOwn(properties, name) ? properties[name] : (schema.additionalProperties ?? true);
        return matchesSchema(field, part, resolver, depth + 1);
    });
}
function isWithin(value, low, high) {
    return !(typeof low === "number" && value < low) && !(typeof high === "number" && value > high);
}
function isInBounds(value, { minimum, maximum, exclusiveMinimum, exclusiveMaximum }) {
    if (!isWithin(value, minimum, maximum))
        return false;
    if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum)
        return false;
    return !(typeof exclusiveMaximum === "number" && value >= exclusiveMaximum);
}
/**
 * JSON values that match a JSON Schema, as in environments of other frameworks; a `SchemaSpace` for schemas that are not trusted. What it
 * does not know it ignores, where zod refuses the schema, and it never runs a pattern, which could take exponential time. It has no
 * flat form.
 */
export class JsonSpace extends Space {
    schema;
    constructor(schema) {
        super();
        this.schema = schema;
    }
    /** Draws a value as `sampleJson` does: patterns and other keywords may not be kept. */
    sample(options) {
        this.rejectMask(options);
        return sampleJson(this.schema, this.random);
    }
    contains(value) {
        return matchesSchema(value, this.schema, new SchemaResolver(this.schema));
    }
    encode(value) {
        return value;
    }
    decode(json) {
        return this.checkMember(json);
    }
    toString() {
        const { properties } = resolveReferences(this.schema, this.schema);
        return `Json(${Object.keys(asJsonObject(properties) ?? {}).join(", ")})`;
    }
}
