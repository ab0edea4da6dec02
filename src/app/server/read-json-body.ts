import type { Context, MiddlewareHandler } from "hono";
import { checkJsonSize, isNestedDeeper } from "../../core/json.js";
import { parseLosslessJsonSteps } from "../../core/lossless-json.js";
import { runStepsWithPauses } from "../../core/steps.js";
import { receiveBody } from "../../core/platform/node/http/receive-body.js";
import { nodeBindings } from "./node-bindings.js";
import { RequestError } from "./request-error.js";

/**
 * Maximum bytes of a request: a conversation that fills a context of 128,000 tokens has less than 1
 * MB.
 */
const MAX_BODY_BYTES = 8 * 2 ** 20;

/**
 * Maximum number of arrays, objects and strings in a request's JSON, and of commas between values:
 * 65,536 values are read, rendered and compared in less than 50 ms.
 */
export const MAX_BODY_VALUES = 65_536;
/** The same for requests with lists of token ids: two contexts of 128,000 tokens. */
export const MAX_TOKEN_VALUES = 262_144;

/** Maximum nesting of a request's JSON; schemas, the deepest part, have at most 100 levels. */
const MAX_BODY_DEPTH = 500;

/** Variable of a context with the bytes of its body. */
const BODY = "body";

/**
 * Receives the body of each request before what follows, so that slow clients take no place among
 * the running requests.
 */
export const receiveBodies =
  (maxBytes = MAX_BODY_BYTES): MiddlewareHandler =>
  async (context, next) => {
    context.set(BODY, await receive(context, maxBytes));
    await next();
  };

/** Returns the bytes of a request's body. @throws as `receiveBody` */
export async function readBody(context: Context, maxBytes = MAX_BODY_BYTES): Promise<Buffer> {
  return (context.get(BODY) as Buffer | undefined) ?? (await receive(context, maxBytes));
}

/**
 * Reads the JSON of a request. @throws RequestError for another type and text that is not JSON, and
 * as `receiveBody`.
 */
export async function readJsonBody(
  context: Context,
  { maxBytes = MAX_BODY_BYTES, maxCommas = MAX_BODY_VALUES } = {},
): Promise<unknown> {
  const { req } = context;
  // Browsers send other types to any address without asking, so that web pages could use a local
  // server.
  if (!/^application\/json\b/i.test(req.header("content-type") ?? ""))
    throw new RequestError(415, "The Content-Type must be application/json.", { code: "unsupported_media_type" });
  const body = await readBody(context, maxBytes);
  let value: unknown;
  try {
    const text = body.toString("utf8");
    checkJsonSize(text, { maxNodes: MAX_BODY_VALUES, maxCommas });
    value = await runStepsWithPauses(parseLosslessJsonSteps(text));
  } catch (error) {
    throw new RequestError(400, `The body must be JSON: ${(error as Error).message}.`, { code: "invalid_json" });
  }
  if (isNestedDeeper(value, MAX_BODY_DEPTH))
    throw new RequestError(400, `The body is nested more than ${MAX_BODY_DEPTH} levels deep.`, {
      code: "invalid_json",
    });
  return value;
}

async function receive(context: Context, maxBytes: number): Promise<Buffer> {
  // Node's own stream, because a request's `body` is a second one around it.
  const { incoming } = nodeBindings(context);
  return incoming === undefined ? Buffer.from(await context.req.arrayBuffer()) : receiveBody(incoming, maxBytes);
}
