import type { Space } from "../../spaces/space.js";
import type { TextInterface } from "../../text-interface.js";
import { type JsonObject, type JsonValue, asJsonObject } from "../../../core/json.js";
import { checkText, createTextInterface, type TextInterfaceOptions } from "../create-text-interface.js";
import { formatMember } from "../../spaces/format-member.js";
import { resolveReferences } from "../../spaces/schema-references.js";
import type { JsonSpace } from "../json-space.js";
import { MAX_ACTION_NAMES, MAX_ACTION_NAME_LENGTH } from "../limits.js";

/**
 * Creates the text interface of an environment on a llamagym server, which formats the
 * observations.
 */
export function createServedTextInterface(
  observationSpace: Space,
  actionSpace: Space,
  options: TextInterfaceOptions,
): TextInterface<unknown, unknown> | undefined {
  const textInterface = createTextInterface(observationSpace, actionSpace, options);
  if (textInterface === undefined) return undefined;
  return {
    ...textInterface,
    formatObservation: (observation, { text, ...info }) =>
      typeof text === "string" ? checkText(text) : textInterface.formatObservation(observation, info),
    choices: textInterface.choices ?? ((_observation, { choices }) => readChoices(choices)),
  };
}

/** Returns the choices that a server sent; none when they are not a list of names. */
function readChoices(choices: unknown): readonly string[] {
  const isName = (choice: unknown) => typeof choice === "string" && choice.length <= MAX_ACTION_NAME_LENGTH;
  const areNames = Array.isArray(choices) && choices.length <= MAX_ACTION_NAMES && choices.every(isName);
  return areNames ? (choices as string[]) : [];
}

/**
 * Creates a text interface for actions that are objects. If the only required, or only, field is a
 * string, the completion is its value; otherwise the action is the last JSON object in the
 * completion.
 */
export function createJsonTextInterface(
  space: JsonSpace,
  { systemPrompt }: TextInterfaceOptions,
): TextInterface<unknown, unknown> {
  const textField = findOnlyTextField(space.schema);
  const instruction =
    textField === undefined
      ? `Answer with a JSON object of this schema: ${JSON.stringify(space.schema)}`
      : `Answer with your ${textField} alone.`;
  return {
    systemPrompt: systemPrompt ?? `You act in an environment, to get as much reward as you can. ${instruction}`,
    formatObservation: (observation) => checkText(formatObject(observation as JsonValue)),
    parseAction: (completion) => {
      const action = textField === undefined ? parseLastObject(completion) : { [textField]: completion.trim() };
      return space.contains(action) ? action : undefined;
    },
    formatAction: (action) => {
      const value = textField === undefined ? action : (action as JsonObject)[textField];
      return typeof value === "string" ? value : formatMember(value as JsonValue, space.schema);
    },
  };
}

function findOnlyTextField(root: JsonObject): string | undefined {
  const { properties, required } = resolveReferences(root, root);
  const allFields = Object.entries(asJsonObject(properties) ?? {}).filter(([name]) => name !== "metadata");
  const requiredFields = allFields.filter(([name]) => Array.isArray(required) && required.includes(name));
  const fields = requiredFields.length > 0 ? requiredFields : allFields;
  if (fields.length !== 1) return undefined;
  const [name, schema] = fields[0];
  return resolveReferences(schema, root).type === "string" ? name : undefined;
}

/** Formats an object with a single string field as that string, anything else as JSON. */
function formatObject(observation: JsonValue): string {
  const values = Object.values(asJsonObject(observation) ?? {});
  return values.length === 1 && typeof values[0] === "string" ? values[0] : JSON.stringify(observation);
}

/** Returns the last JSON object in a completion; undefined without one. */
export function parseLastObject(completion: string): JsonValue | undefined {
  const end = completion.lastIndexOf("}");
  let start = end < 0 ? -1 : completion.lastIndexOf("{", end);
  for (; start >= 0; start = start === 0 ? -1 : completion.lastIndexOf("{", start - 1)) {
    try {
      return JSON.parse(completion.slice(start, end + 1)) as JsonValue;
    } catch {
      // A nested object, or not an object.
    }
  }
  return undefined;
}
