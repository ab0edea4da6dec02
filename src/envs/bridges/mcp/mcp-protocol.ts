import { asJsonObject, type JsonObject } from "../../../core/json.js";
import type { OpenEnvSession } from "../open-env/open-env-session.js";
import type { EnvTools } from "./env-tools.js";

/**
 * Revisions of the protocol that differ in nothing that is used here; the first is the answer to an
 * unknown one.
 */
export const PROTOCOL_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** The reply to something other than a JSON object. */
export const PARSE_ERROR: JsonObject = {
  jsonrpc: "2.0",
  id: null,
  error: { code: -32700, message: "The message is no JSON object, or nested too deep." },
};

/** Codes of JSON-RPC. */
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;

/** Whether a message is no notification, and no reply to a request that was never sent. */
export const needsReply = (message: JsonObject): boolean =>
  !(message.jsonrpc === "2.0" && (message.id === undefined || message.method === undefined));

/** Answers a request of the Model Context Protocol with an environment's tools. */
export async function answerMcp(tools: EnvTools, session: OpenEnvSession, message: JsonObject): Promise<JsonObject> {
  const { jsonrpc, id = null, method, params } = message;
  const succeed = (result: JsonObject) => ({ jsonrpc: "2.0", id, result });
  const fail = (code: number, text: string) => ({ jsonrpc: "2.0", id, error: { code, message: text } });
  if (jsonrpc !== "2.0" || typeof method !== "string")
    return fail(INVALID_REQUEST, 'A request needs "jsonrpc": "2.0" and a method.');
  const fields = asJsonObject(params) ?? {};
  if (method === "initialize") return succeed(initialize(tools, fields));
  if (method === "ping") return succeed({});
  if (method === "tools/list") return succeed({ tools: tools.list });
  if (method !== "tools/call")
    return fail(METHOD_NOT_FOUND, `There is no ${method}. There are: initialize, ping, tools/list, tools/call.`);
  const result = tools.call(session, fields.name, asJsonObject(fields.arguments) ?? {});
  return result === undefined ? fail(INVALID_PARAMS, "The tools are reset and step.") : succeed(await result);
}

function initialize({ serverInfo, instructions }: EnvTools, { protocolVersion }: JsonObject): JsonObject {
  const isKnown = typeof protocolVersion === "string" && PROTOCOL_VERSIONS.includes(protocolVersion);
  return {
    protocolVersion: isKnown ? protocolVersion : PROTOCOL_VERSIONS[0],
    capabilities: { tools: {} },
    serverInfo,
    instructions,
  };
}
