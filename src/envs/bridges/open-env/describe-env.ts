import { createRequire } from "node:module";
import type { Env } from "../../env.js";
import { Discrete } from "../../spaces/discrete.js";
import { spaceToJson } from "../../spaces/space-json.js";
import type { JsonObject } from "../channel.js";
import { EXTENSION_KEY, EXTENSION_VERSION } from "./open-env-protocol.js";
import { spaceToSchema } from "../space-schema.js";

/** Actions of larger spaces get no names. */
const MAX_ACTION_NAMES = 100;

/** Describes an environment for a server's clients. */
export interface ServerDescription {
  readonly metadata: JsonObject;
  readonly schema: JsonObject;
}

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
          ...(text === undefined
            ? {}
            : { text: { type: "string", description: "The action in words, in place of `action`" } }),
          metadata: { type: "object" },
        },
        additionalProperties: false,
        [EXTENSION_KEY]: {
          protocol: EXTENSION_VERSION,
          name,
          observationSpace: spaceToJson(env.observationSpace),
          actionSpace: spaceToJson(env.actionSpace),
          ...(text === undefined ? {} : { systemPrompt: text.systemPrompt }),
          ...listActionNames(env),
        },
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

function listActionNames({ text, actionSpace }: Env): JsonObject {
  if (text === undefined || !(actionSpace instanceof Discrete) || actionSpace.n > MAX_ACTION_NAMES) return {};
  return { actionNames: Array.from({ length: actionSpace.n }, (_, i) => text.formatAction(actionSpace.start + i)) };
}
