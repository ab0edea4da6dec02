import type { JsonValue } from "../../../core/json.js";
import { asJsonObject, bridgeError, truncateText } from "../channel.js";
import { LlamaGymError } from "../../../core/errors.js";

/** A server that speaks JSON over HTTP. */
export interface HttpServer {
  /** What errors call it. */
  readonly name: string;
  /** Without a slash at the end. */
  readonly url: string;
  /** Milliseconds that a request may take. */
  readonly timeout: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer that a server gave: its status, and its body as JSON where it is that. */
export interface HttpResponse {
  readonly status: number;
  readonly json: JsonValue | undefined;
  readonly text: string;
}

/** The parts of a server's address that requests are built on. @throws INVALID_ARGUMENT for another kind of address. */
export function parseServerUrl(url: string, protocols: readonly string[]): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !protocols.includes(parsed.protocol.slice(0, -1))) {
    const forms = protocols.map((protocol) => `${protocol}://`).join(", ");
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `"${url}" is no server's address: expected ${forms} followed by host and port.`,
    );
  }
  parsed.hash = "";
  parsed.search = "";
  parsed.pathname = parsed.pathname.replace(/\/+$/, "");
  return parsed;
}

/** Sends a request, with a body when one is given. @throws ENV_FAILED when no answer comes in time. */
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

/** Sends a request whose answer must be a good one. @throws ENV_FAILED for another, ENV_ACTION_INVALID for a status 422. */
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
