import { errorMessage } from "../../../core/errors.js";
import { asJsonObject, type JsonObject, type JsonValue } from "../../../core/json.js";
import type { Env } from "../../env.js";
import { type ServerDescription, listActionNames } from "../open-env/describe-env.js";
import type { OpenEnvSession } from "../open-env/open-env-session.js";
import { spaceToSchema } from "../space-schema.js";

/** The MCP tools of an environment: `reset` and `step`. */
export interface EnvTools {
  readonly list: readonly JsonObject[];
  /** Name and version. */
  readonly serverInfo: JsonObject;
  /** The task, for the model. */
  readonly instructions: string;
  /**
   * Calls a tool in a session; a failure is a result with `isError`. Returns undefined for an
   * unknown tool.
   */
  call(session: OpenEnvSession, name: JsonValue | undefined, args: JsonObject): Promise<JsonObject> | undefined;
}

/**
 * Describes an environment's `reset` and `step` as tools. Results have the observation as text and
 * all else as structure.
 */
export function createEnvTools(env: Env, { metadata, schema }: ServerDescription): EnvTools {
  const observation = schema.observation as { readonly properties: JsonObject; readonly required: readonly string[] };
  const outputSchema: JsonObject = {
    type: "object",
    properties: {
      ...observation.properties,
      reward: { type: ["number", "null"], description: "Reward of the step; null after a reset" },
      done: { type: "boolean", description: "Whether the episode has ended; the next call is then reset" },
    },
    required: [...observation.required, "reward", "done"],
  };
  const instructions = metadata.description as string;
  return {
    serverInfo: { name: metadata.name, version: metadata.version },
    instructions,
    list: [
      {
        name: "reset",
        description: "Starts an episode and returns the first observation.",
        inputSchema: { type: "object", properties: { seed: { type: "integer", minimum: 0 } } },
        outputSchema,
      },
      {
        name: "step",
        description: `Takes an action and returns the next observation. ${instructions}`,
        inputSchema: { type: "object", properties: { action: createActionSchema(env) }, required: ["action"] },
        outputSchema,
      },
    ],
    call: (session, name, args) => {
      if (name === "reset") return answer(session.reset(args));
      if (name === "step") return answer(session.step(toStep(env, args)));
      return undefined;
    },
  };
}

/**
 * An action in words where the environment has a text interface, otherwise as its space encodes it.
 */
function createActionSchema(env: Env): JsonObject {
  const { text } = env;
  if (text === undefined) return spaceToSchema(env.actionSpace);
  const { jsonSchema, choices = listActionNames(env).actionNames } = text;
  // References would have to start at the root of the tool's schema.
  if (jsonSchema !== undefined)
    return JSON.stringify(jsonSchema).includes('"$ref"') ? { type: "object" } : (jsonSchema as JsonObject);
  return { type: "string", ...(Array.isArray(choices) && { enum: choices as readonly string[] }) };
}

function toStep({ text }: Env, { action }: JsonObject): JsonObject {
  if (text === undefined || action === undefined) return { action: action ?? null };
  return { text: typeof action === "string" ? action : JSON.stringify(action) };
}

async function answer(result: Promise<JsonObject>): Promise<JsonObject> {
  try {
    const { observation, reward, done } = await result;
    const fields = asJsonObject(observation)!;
    const shown = fields.text ?? fields.observation;
    const text = typeof shown === "string" ? shown : JSON.stringify(shown);
    return { content: [{ type: "text", text }], structuredContent: { ...fields, reward, done } };
  } catch (error) {
    return { content: [{ type: "text", text: errorMessage(error) }], isError: true };
  }
}
