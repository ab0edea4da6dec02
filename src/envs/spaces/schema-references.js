import { invalidEnv } from "../../core/errors.js";
import { asJsonObject } from "../../core/json.js";
/** Maximum number of references that lead to one schema: more are a circle. */
const MAX_REFERENCES = 32;
/** Maximum number of schemas visited for one value; alternatives that refer to themselves multiply without end. */
const MAX_SCHEMA_STEPS = 10_000;
/** Maximum nesting of a value: every level takes stack frames of the recursive readers. */
const MAX_DEPTH = 64;
/** Resolves a schema's references; {} for invalid schemas. */
export function resolveReferences(schemaJson, root) {
    let schema = asJsonObject(schemaJson) ?? {};
    for (let i = 0; typeof schema.$ref === "string" && i < MAX_REFERENCES; i++) {
        let target = root;
        for (const key of schema.$ref.split("/").slice(1)) {
            const fields = asJsonObject(target);
            target = fields !== undefined && Object.hasOwn(fields, key) ? fields[key] : undefined;
        }
        schema = asJsonObject(target) ?? {};
    }
    return schema;
}
/** Resolves the schemas of a document, as often as one value may need them. */
export class SchemaResolver {
    root;
    steps = 0;
    constructor(root) {
        this.root = root;
    }
    /** @throws ENV_INVALID when schemas refer to themselves too often. */
    resolve(schema, depth) {
        if (depth <= MAX_DEPTH && ++this.steps <= MAX_SCHEMA_STEPS)
            return resolveReferences(schema, this.root);
        throw invalidEnv(`The schema of an environment's values is too complex: one value takes more than ${MAX_SCHEMA_STEPS} steps or ${MAX_DEPTH} levels.`);
    }
}
