import { Readable } from "node:stream";
import type { Context } from "hono";
import { isNestedDeeper } from "../../core/json.js";
import { nodeBindings } from "./node-bindings.js";
import { clientClosedError, RequestError } from "./request-error.js";

/** Maximum bytes of a request: a conversation that fills a context of 128,000 tokens has less than 1 MB. */
const MAX_BODY_BYTES = 8 * 2 ** 20;

/** Maximum nesting of a request's JSON; schemas, the deepest part, have at most 100 levels. */
const MAX_BODY_DEPTH = 500;

/** Reads the JSON of a request. @throws RequestError for another type, too many bytes, and text that is not JSON. */
export async function readJsonBody(context: Context, maxBytes = MAX_BODY_BYTES): Promise<unknown> {
  const { req } = context;
  // Browsers send other types to any address without asking, so that web pages could use a local server.
  if (!/^application\/json\b/i.test(req.header("content-type") ?? ""))
    throw new RequestError(415, "The Content-Type must be application/json.", { code: "unsupported_media_type" });
  const tooLarge = () => new RequestError(413, `The body has more than ${maxBytes} bytes. Send less.`);
  if (Number(req.header("content-length")) > maxBytes) throw tooLarge();
  const body = await readBytes(context, maxBytes, tooLarge);
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new RequestError(400, `The body must be JSON: ${(error as Error).message}.`, { code: "invalid_json" });
  }
  if (isNestedDeeper(value, MAX_BODY_DEPTH))
    throw new RequestError(400, `The body is nested more than ${MAX_BODY_DEPTH} levels deep.`, {
      code: "invalid_json",
    });
  return value;
}

async function readBytes(context: Context, maxBytes: number, tooLarge: () => RequestError): Promise<Buffer> {
  const { incoming } = nodeBindings(context);
  // Node's own stream, because a request's `body` is a second one around it. It stays open for the response to a long body.
  const body: AsyncIterable<Uint8Array> =
    incoming?.iterator({ destroyOnReturn: false }) ?? context.req.raw.body ?? Readable.from([]);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of body) {
      length += chunk.length;
      if (length > maxBytes) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    if (incoming?.readableAborted === true) throw clientClosedError();
    throw error;
  }
  return Buffer.concat(chunks);
}
