import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { nodeBindings } from "./node-bindings.js";
import type { RequestLifetime } from "./request-lifetime.js";
import type { ServerEvent } from "./wire-format.js";

/**
 * Milliseconds that a client may take to read the end of a stream; its socket holds about 100 KB
 * until then.
 */
const MAX_STALL_MS = 60_000;

/** Variable of a context with a promise of the end of its stream. */
export const STREAM_END = "streamEnd";

type WriteEvents = (events: readonly ServerEvent[]) => void;

/**
 * Responds with the events that `run` writes. Resolves at the first event, and rejects if `run`
 * fails before it, so that the error has its own status; later errors become the event that
 * `formatError` returns. A client that stops reading is disconnected; until then its events, which
 * the length of a completion bounds, wait in memory.
 */
export async function eventStream(
  context: Context,
  lifetime: RequestLifetime,
  run: (write: WriteEvents) => Promise<void>,
  formatError: (error: unknown) => ServerEvent,
): Promise<Response> {
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const { outgoing } = nodeBindings(context);
  const body = new ReadableStream<Uint8Array>({
    start: (created) => {
      controller = created;
    },
    cancel: () => lifetime.leave(),
  });
  const write: WriteEvents = (events) => {
    if (lifetime.hasLeft) return;
    for (const { event, data } of events) {
      const name = event === undefined ? "" : `event: ${event}\n`;
      controller!.enqueue(encoder.encode(`${name}data: ${data}\n\n`));
    }
  };
  let begin: () => void = () => {};
  const began = new Promise<void>((resolve) => {
    begin = resolve;
  });
  let hasBegun = false;
  const running = run((events) => {
    write(events);
    if (events.length === 0) return;
    hasBegun = true;
    begin();
  });
  const ended = running
    .catch((error: unknown) => {
      if (hasBegun) write([formatError(error)]);
    })
    .finally(() => {
      lifetime.finish();
      if (!lifetime.hasLeft) controller!.close();
    });
  await Promise.race([began, running]);
  context.set(STREAM_END, ended);
  if (outgoing !== undefined) void ended.then(() => limitStall(outgoing));
  context.header("content-type", "text/event-stream; charset=utf-8");
  context.header("cache-control", "no-cache");
  return context.body(body);
}

/** Disconnects a client that does not read the end of its stream in time. */
function limitStall(outgoing: HttpBindings["outgoing"]): void {
  if (outgoing.writableFinished || outgoing.destroyed) return;
  const timer = setTimeout(() => outgoing.destroy(), MAX_STALL_MS).unref();
  outgoing.once("close", () => clearTimeout(timer));
}
