import type { JsonValue } from "../json.js";
import type { Space } from "../spaces/space.js";
import type { TextForm } from "../text-form.js";
import { asObject, type JsonObject, plainText } from "./channel.js";
import { genericText, type GenericTextOptions } from "./generic-text.js";
import { resolved } from "./json-schema.js";
import type { JsonSpace } from "./json-space.js";

/** The text form of an environment that a llamagym server serves: observations as the server writes them. */
export function servedText(
  observationSpace: Space,
  actionSpace: Space,
  { systemPrompt, actionNames }: JsonObject,
  given: GenericTextOptions,
): TextForm<unknown, unknown> | undefined {
  const form = genericText(observationSpace, actionSpace, {
    systemPrompt: typeof systemPrompt === "string" ? systemPrompt : undefined,
    actionNames: Array.isArray(actionNames) ? (actionNames as readonly string[]) : undefined,
    ...given,
  });
  if (form === undefined) return undefined;
  return {
    ...form,
    formatObservation: (observation, info) =>
      typeof info["text"] === "string" ? info["text"] : form.formatObservation(observation, info),
    choices:
      form.choices ?? ((_observation, info) => (Array.isArray(info["choices"]) ? (info["choices"] as string[]) : [])),
  };
}

/**
 * A text form for actions that are objects: where the only thing that an action must have, or can have, is one text, a
 * reply is that text; else it is the last JSON object of the reply.
 */
export function jsonText(space: JsonSpace, { systemPrompt }: GenericTextOptions): TextForm<unknown, unknown> {
  const field = onlyText(space.schema);
  const ask =
    field === undefined
      ? `Answer with a JSON object of this schema: ${JSON.stringify(space.schema)}`
      : `Answer with your ${field} alone.`;
  return {
    systemPrompt: systemPrompt ?? `You act in an environment, to get as much reward as you can. ${ask}`,
    formatObservation: (observation) => objectText(observation as JsonValue),
    parseAction: (reply) => {
      const action = field === undefined ? lastObject(reply) : { [field]: reply.trim() };
      return space.contains(action) ? action : undefined;
    },
    formatAction: (action) => (field === undefined ? JSON.stringify(action) : plainText((action as JsonObject)[field])),
  };
}

function onlyText(root: JsonObject): string | undefined {
  const { properties, required } = resolved(root, root);
  const all = Object.entries(asObject(properties) ?? {}).filter(([name]) => name !== "metadata");
  const needed = all.filter(([name]) => Array.isArray(required) && required.includes(name));
  const fields = needed.length > 0 ? needed : all;
  if (fields.length !== 1) return undefined;
  const [name, schema] = fields[0];
  return resolved(schema, root).type === "string" ? name : undefined;
}

/** An object with one text in it is that text; anything else is JSON. */
function objectText(observation: JsonValue): string {
  const values = Object.values(asObject(observation) ?? {});
  return values.length === 1 && typeof values[0] === "string" ? values[0] : JSON.stringify(observation);
}

function lastObject(reply: string): JsonValue | undefined {
  const end = reply.lastIndexOf("}");
  for (
    let start = reply.lastIndexOf("{", end);
    start >= 0;
    start = start === 0 ? -1 : reply.lastIndexOf("{", start - 1)
  ) {
    try {
      return JSON.parse(reply.slice(start, end + 1)) as JsonValue;
    } catch {
      // An object inside the one that is looked for, or no object at all.
    }
  }
  return undefined;
}
