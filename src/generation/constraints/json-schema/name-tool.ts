import { isJsonObject } from "../../../core/json.js";
import { LlamaGymError } from "../../../core/errors.js";
import type { JsonSchema } from "./keywords.js";

/** The place of a call's arguments in the schema of calls of several tools (`toolCallSchema`). */
const PLACE_OF_ARGUMENTS = /^Invalid JSON schema: at #(?<call>\/.*?)\/properties\/(?:arguments|parameters)(?=[/,])/;

/**
 * Returns an error about the schema of a tool's arguments with the name of the tool, and any other
 * error as it is.
 */
export function nameTool(error: unknown, root: JsonSchema): unknown {
  if (!(error instanceof LlamaGymError)) return error;
  const { call } = PLACE_OF_ARGUMENTS.exec(error.message)?.groups ?? {};
  if (call === undefined) return error;
  let part: unknown = root;
  for (const name of call.slice(1).split("/"))
    part = isJsonObject(part) || Array.isArray(part) ? (part as Readonly<Record<string, unknown>>)[name] : undefined;
  const properties = isJsonObject(part) ? part.properties : undefined;
  const name = isJsonObject(properties) && isJsonObject(properties.name) ? properties.name.const : undefined;
  if (typeof name !== "string") return error;
  const message = `The tool ${JSON.stringify(name)} cannot be called: ${error.message}`;
  return new LlamaGymError(error.code, message, { cause: error });
}
