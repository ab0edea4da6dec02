import { type JsonValue, asJsonObject } from "../../../core/json.js";
import { excerpt } from "../../../core/format.js";
import { invalidArgument, LlamaGymError } from "../../../core/errors.js";
import { bridgeError, formatJson, parseMessage } from "../channel.js";
import { MAX_MESSAGE_BYTES } from "../limits.js";

/** A JSON-over-HTTP server. */
export interface HttpServer {
  /** Name in error messages. */
  readonly name: string;
  /** Without a trailing slash. */
  readonly url: string;
  /** Request timeout in milliseconds, from the request to the end of the response. */
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
    throw invalidArgument(`"${url}" is not a server's address. Expected ${forms} followed by host and port.`);
  }
  parsed.hash = "";
  parsed.search = "";
  parsed.pathname = parsed.pathname.replace(/\/+$/, "");
  return parsed;
}

/**
 * Sends a request, optionally with a body. @throws ENV_FAILED when there is no response in time, or
 * a too long one.
 */
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
      // A server must not send requests on to other addresses.
      redirect: "manual",
    });
    const text = await readText(response);
    if (text === undefined) throw bridgeError(name, `answered ${path} with more than ${MAX_MESSAGE_BYTES} bytes.`);
    return { status: response.status, text, json: parseMessage(text) };
  } catch (error) {
    if (error instanceof LlamaGymError) throw error;
    if ((error as Error).name === "TimeoutError")
      throw bridgeError(name, `did not answer ${path} within ${timeout} ms.`, error);
    const { cause } = error as { cause?: { message?: string; code?: string } };
    const reason = cause?.code ?? cause?.message ?? (error as Error).message;
    throw bridgeError(name, `cannot be reached (${reason}). Is the server running at this address?`, error);
  }
}

/** Reads a body; undefined when it exceeds the limit. The rest of it is not received. */
async function readText(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > MAX_MESSAGE_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * Sends a request that must succeed. @throws ENV_FAILED for an error status, ENV_ACTION_INVALID for
 * status 422.
 */
export async function requestJson(server: HttpServer, path: string, body?: JsonValue): Promise<JsonValue> {
  const response = await sendRequest(server, path, body);
  if (response.status >= 200 && response.status < 300) {
    if (response.json !== undefined) return response.json;
    throw bridgeError(server.name, `did not answer ${path} with JSON: ${excerpt(response.text)}`);
  }
  const { detail, error } = asJsonObject(response.json) ?? {};
  const message = formatJson(detail ?? error ?? response.text, 500);
  if (response.status === 422)
    throw new LlamaGymError("ENV_ACTION_INVALID", `${server.name} refused ${path}: ${message}`);
  throw bridgeError(server.name, `answered ${path} with status ${response.status}: ${message}`);
}
