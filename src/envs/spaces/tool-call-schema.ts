import type { PlainJsonSchema } from "./schema-references.js";

/** A function with named arguments. */
export interface CallableTool {
  readonly name: string;
  /** JSON schema of the arguments, an object. */
  readonly parameters: PlainJsonSchema;
}

/** How calls are laid out as JSON. */
export interface ToolCallLayout {
  readonly isList: boolean;
  readonly argumentsKey: "arguments" | "parameters";
}

/** Maximum number of calls in a list. */
const MAX_LISTED_CALLS = 8;

/** Returns the JSON schema of a call of one of the tools, or of a list of calls. */
export function toolCallSchema(
  tools: readonly CallableTool[],
  { isList, argumentsKey }: ToolCallLayout,
  allowsParallel: boolean,
): PlainJsonSchema {
  const path = isList ? "#/items/anyOf" : "#/anyOf";
  const call = {
    anyOf: tools.map(({ name, parameters }, i) => ({
      type: "object",
      properties: {
        name: { const: name },
        [argumentsKey]: moveReferences(parameters, `${path}/${i}/properties/${argumentsKey}`),
      },
      required: ["name", argumentsKey],
    })),
  };
  return isList ? { type: "array", items: call, minItems: 1, maxItems: allowsParallel ? MAX_LISTED_CALLS : 1 } : call;
}

/** Returns how the text of a call of a tool begins, or of a list of calls that begins with it. */
export function toolCallStart(name: string, { isList, argumentsKey }: ToolCallLayout): string {
  return `${isList ? "[" : ""}{"name": ${JSON.stringify(name)}, "${argumentsKey}": `;
}

/** Returns a schema of the values that either schema allows. */
export function unionSchema(first: PlainJsonSchema, second: PlainJsonSchema): PlainJsonSchema {
  return { anyOf: [moveReferences(first, "#/anyOf/0"), moveReferences(second, "#/anyOf/1")] };
}

/**
 * Returns a schema whose references are valid when it is at `path` of another one; its identifier
 * is dropped.
 */
function moveReferences(parameters: PlainJsonSchema, path: string): PlainJsonSchema {
  if (typeof parameters === "boolean") return parameters;
  const { $id: id, ...schema } = parameters;
  const text = JSON.stringify(schema, (key, value: unknown) => {
    if (key !== "$ref" || typeof value !== "string") return value;
    const fragment = typeof id === "string" && value.startsWith(`${id}#`) ? value.slice(id.length) : value;
    return fragment === "#" || fragment.startsWith("#/") ? path + fragment.slice(1) : value;
  });
  return JSON.parse(text) as PlainJsonSchema;
}
