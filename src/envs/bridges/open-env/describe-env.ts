import { createRequire } from "node:module";
import type { Env } from "../../env.js";
import { Discrete, SchemaSpace, spaceToJson, type Space } from "../../spaces/index.js";
import type { JsonObject } from "../../../core/json.js";
import { EXTENSION_KEY, EXTENSION_VERSION } from "./open-env-protocol.js";
import { JsonSpace } from "../json-space.js";
import { spaceToSchema } from "../space-schema.js";

/** Version of OpenEnv's HTTP API. */
const API_VERSION = "1.0.0";
/** Actions of larger spaces get no names. */
const MAX_ACTION_NAMES = 100;

/** Describes an environment for a server's clients. */
export interface ServerDescription {
  readonly metadata: JsonObject;
  readonly schema: JsonObject;
}

/**
 * Describes the server's routes ("GET /health") in OpenAPI, from which `openenv validate` reads
 * version and mode.
 */
export function describeApi({ metadata }: ServerDescription, routes: readonly string[]): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const route of routes) {
    const [method, path] = route.split(" ");
    const responses = { 200: { description: "A JSON object", content: { "application/json": {} } } };
    const body: JsonObject = method === "POST" ? { requestBody: { content: { "application/json": {} } } } : {};
    paths[path] = { [method.toLowerCase()]: { ...body, responses } };
  }
  return { openapi: "3.1.0", info: { title: metadata.name, version: API_VERSION }, paths };
}

/** Describes an environment for the clients of a server. */
export function describeEnv(env: Env): ServerDescription {
  const { version } = createRequire(import.meta.url)("../../../../package.json") as { version: string };
  const name = env.spec?.id ?? env.unwrapped.constructor.name;
  const { text } = env;
  return {
    metadata: {
      name,
      description: text?.systemPrompt ?? `${name}: actions ${env.actionSpace.toString()}`,
      version: `llamagym ${version}`,
    },
    schema: {
      action: {
        title: "Action",
        type: "object",
        properties: {
          action: {
            ...spaceToSchema(env.actionSpace),
            description: `An action of ${env.actionSpace.toString().slice(0, 200)}`,
          },
          ...(text && { text: { type: "string", description: "The action in words, in place of `action`" } }),
          metadata: { type: "object" },
        },
        additionalProperties: false,
        ...describeExtension(env, name),
      },
      observation: {
        title: "Observation",
        type: "object",
        properties: {
          observation: spaceToSchema(env.observationSpace),
          text: { type: "string" },
          choices: { type: "array", items: { type: "string" } },
          info: { type: "object" },
          terminated: { type: "boolean" },
          truncated: { type: "boolean" },
        },
        required: ["observation", "info", "terminated", "truncated"],
      },
      state: {
        title: "State",
        type: "object",
        properties: { episode_id: { type: ["string", "null"] }, step_count: { type: "integer", minimum: 0 } },
      },
    },
  };
}

/**
 * Describes the spaces for llamagym's client. Those without such a description are JSON for it, as
 * those of other servers.
 */
function describeExtension(env: Env, name: string): JsonObject {
  const { text } = env;
  if (![env.observationSpace, env.actionSpace].every(hasJson)) return {};
  return {
    [EXTENSION_KEY]: {
      protocol: EXTENSION_VERSION,
      name,
      observationSpace: spaceToJson(env.observationSpace),
      actionSpace: spaceToJson(env.actionSpace),
      ...(text && { systemPrompt: text.systemPrompt }),
      ...listActionNames(env),
    },
  };
}

const hasJson = (space: Space) => !(space instanceof SchemaSpace || space instanceof JsonSpace);

/** Names the actions of a small discrete space, as `actionNames`. */
export function listActionNames({ text, actionSpace }: Env): { readonly actionNames?: readonly string[] } {
  if (text === undefined || !(actionSpace instanceof Discrete) || actionSpace.n > MAX_ACTION_NAMES) return {};
  return { actionNames: Array.from({ length: actionSpace.n }, (_, i) => text.formatAction(actionSpace.start + i)) };
}
