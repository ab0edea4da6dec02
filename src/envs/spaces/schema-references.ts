import { invalidEnv } from "../../core/errors.js";
import { asJsonObject, type JsonObject, type JsonValue } from "../../core/json.js";

/** A JSON Schema as it is written in code. */
export type PlainJsonSchema = Readonly<Record<string, unknown>>;

/** Maximum number of references that lead to one schema: more are a circle. */
const MAX_REFERENCES = 32;
/**
 * Maximum number of schemas visited for one value; alternatives that refer to themselves multiply
 * without end.
 */
const MAX_SCHEMA_STEPS = 10_000;
/** Maximum nesting of a value: every level takes stack frames of the recursive readers. */
const MAX_DEPTH = 64;

/** Resolves a schema's references; {} for invalid schemas. */
export function resolveReferences(schemaJson: JsonValue | undefined, root: JsonObject): JsonObject {
  let schema = asJsonObject(schemaJson) ?? {};
  for (let i = 0; typeof schema.$ref === "string" && i < MAX_REFERENCES; i++) {
    let target: JsonValue | undefined = root;
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
  private steps = 0;

  constructor(private readonly root: JsonObject) {}

  /** @throws ENV_INVALID when schemas refer to themselves too often. */
  resolve(schema: JsonValue | undefined, depth: number): JsonObject {
    if (depth <= MAX_DEPTH && ++this.steps <= MAX_SCHEMA_STEPS) return resolveReferences(schema, this.root);
    throw invalidEnv(
      `The schema of an environment's values is too complex: one value takes more than ${MAX_SCHEMA_STEPS} steps or ${MAX_DEPTH} levels.`,
    );
  }
}
