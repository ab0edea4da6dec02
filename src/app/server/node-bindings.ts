import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Context } from "hono";
import { stringifyJson } from "../../core/lossless-json.js";

/**
 * Returns Node's request and response behind a context; none where the app is called without a
 * server.
 */
export function nodeBindings(context: Context): Partial<HttpBindings> {
  return (context.env as Partial<HttpBindings> | undefined) ?? {};
}

/** Sets a header of the response, however it is sent. */
export function setHeader(context: Context, name: string, value: string): void {
  const { outgoing } = nodeBindings(context);
  if (outgoing === undefined) context.header(name, value);
  else outgoing.setHeader(name, value);
}

/**
 * Responds with status 200, JSON and the headers of `setHeader`. Written by Node itself: the body
 * of a `Response` is a stream, which costs a timer.
 */
export function sendJson(context: Context, value: unknown): Response {
  const { outgoing } = nodeBindings(context);
  if (outgoing === undefined) return context.body(stringifyJson(value), 200, { "content-type": "application/json" });
  const body = Buffer.from(stringifyJson(value));
  outgoing.writeHead(200, { "content-type": "application/json", "content-length": body.length });
  outgoing.end(body);
  return RESPONSE_ALREADY_SENT;
}
