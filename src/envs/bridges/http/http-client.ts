import type { JsonValue } from "../../../core/json.js";
import { asJsonObject, bridgeError, truncateText } from "../channel.js";
import { LlamaGymError, invalidArgument } from "../../../core/errors.js";

/** A JSON-over-HTTP server. */
export interface HttpServer {
  /** Name in error messages. */
  readonly name: string;
  /** Without a trailing slash. */
  readonly url: string;
  /** Request timeout in milliseconds. */
  readonly timeout: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A server's response: status, text, and the body if it is JSON. */
export interface HttpResponse {
  readonly status: number;
  readonly json: JsonValue | undefined;
  readonly text: string;
}

/** Parses a server's address. @throws INVALID_ARGUMENT for other addresses. */
export function parseServerUrl(url: string, protocols: readonly string[]): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !protocols.includes(parsed.protocol.slice(0, -1))) {
    const forms = protocols.map((protocol) => `${protocol}://`).join(", ");
    throw invalidArgument(`"${url}" is no server's address: expected ${forms} followed by host and port.`);
  }
  parsed.hash = "";
  parsed.search = "";
  parsed.pathname = parsed.pathname.replace(/\/+$/, "");
  return parsed;
}

/** Sends a request, optionally with a body. @throws ENV_FAILED when there is no response in time. */
export async function sendRequest(
  { name, url, timeout, headers }: HttpServer,
  path: string,
  body?: JsonValue,
): Promise<HttpResponse> {
  const post = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  try {
    const response = await fetch(`${url}${path}`, {
      ...post,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      signal: AbortSignal.timeout(timeout),
    });
    const text = await response.text();
    return { status: response.status, text, json: tryParseJson(text) };
  } catch (error) {
    if ((error as Error).name === "TimeoutError")
      throw bridgeError(name, `did not answer ${path} within ${timeout} ms.`, error);
    const { cause } = error as { cause?: { message?: string; code?: string } };
    const reason = cause?.code ?? cause?.message ?? (error as Error).message;
    throw bridgeError(name, `cannot be reached (${reason}). Is the server running at this address?`, error);
  }
}

/** Sends a request that must succeed. @throws ENV_FAILED for an error status, ENV_ACTION_INVALID for status 422. */
export async function requestJson(server: HttpServer, path: string, body?: JsonValue): Promise<JsonValue> {
  const response = await sendRequest(server, path, body);
  if (response.status >= 200 && response.status < 300) {
    if (response.json !== undefined) return response.json;
    throw bridgeError(server.name, `answered ${path} with what is no JSON: ${truncateText(response.text)}`);
  }
  const { detail, error } = asJsonObject(response.json) ?? {};
  const problem = detail ?? error;
  const message =
    typeof problem === "string"
      ? problem
      : truncateText(problem === undefined ? response.text : JSON.stringify(problem), 500);
  if (response.status === 422) {
    throw new LlamaGymError("ENV_ACTION_INVALID", `${server.name} refused ${path}: ${message}`);
  }
  throw bridgeError(server.name, `answered ${path} with status ${response.status}: ${message}`);
}

function tryParseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
