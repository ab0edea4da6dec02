import type { Context, Hono } from "hono";
import type { ChatEngine, ChatResult } from "./chat-engine.js";
import { eventStream } from "./event-stream.js";
import { anthropicMessages } from "./anthropic-messages.js";
import { openAiChat } from "./openai-chat.js";
import { openAiCompletions } from "./openai-completions.js";
import { openAiResponses } from "./openai-responses.js";
import { sendJson } from "./node-bindings.js";
import { readJsonBody } from "./read-json-body.js";
import { toRequestError } from "./request-error.js";
import { RequestLifetime } from "./request-lifetime.js";
import type { ServerMetrics } from "./server-metrics.js";
import { countTokens, type WireFormat, type WireRequest } from "./wire-format.js";

/** All APIs that `mountChatRoutes` adds. */
const WIRE_FORMATS: readonly WireFormat[] = [openAiChat, openAiCompletions, openAiResponses, anthropicMessages];

/** Options of `mountChatRoutes`. */
export interface ChatRouteOptions {
  /** Milliseconds after which a request fails. Default 10 minutes. */
  readonly timeoutMs?: number;
  readonly metrics?: ServerMetrics;
  /** Logs an error that the client did not cause. */
  readonly onError?: (error: unknown) => void;
}

/** Finds the engine for the model that a request names. @throws RequestError for an unknown one. */
export type EngineLookup = (model: string | undefined, context: Context) => ChatEngine | Promise<ChatEngine>;

/** A completion takes minutes on a small machine; longer ones come from clients that are gone. */
export const DEFAULT_TIMEOUT_MS = 600_000;

/** Adds the routes of all APIs for completions to an app, for the engines that `engineFor` finds. */
export function mountChatRoutes(app: Hono, engineFor: EngineLookup, options: ChatRouteOptions = {}): void {
  for (const format of WIRE_FORMATS) {
    app.post(format.path, async (context) => {
      try {
        const wire = format.parse(await readJsonBody(context));
        return await respond(wire, format, await engineFor(wire.model, context), context, options);
      } catch (error) {
        return errorResponse(error, format, context, options);
      }
    });
  }
}

function errorResponse(error: unknown, format: WireFormat, context: Context, { onError }: ChatRouteOptions): Response {
  const requestError = toRequestError(error);
  if (requestError.status >= 500) onError?.(requestError.cause ?? error);
  if (requestError.retryAfter !== undefined) context.header("retry-after", String(requestError.retryAfter));
  return context.json(format.formatError(requestError), requestError.status as 400);
}

async function respond(
  wire: WireRequest,
  format: WireFormat,
  engine: ChatEngine,
  context: Context,
  options: ChatRouteOptions,
): Promise<Response> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, metrics, onError } = options;
  const lifetime = new RequestLifetime(context, timeoutMs);
  const { signal } = lifetime;
  const generate = async (onDelta?: Parameters<ChatEngine["generate"]>[1], request = 0): Promise<ChatResult> =>
    engine.generate({ ...wire.requests[request], signal }, onDelta);
  const finish = (results: readonly ChatResult[]) => {
    lifetime.finish();
    metrics?.countTokens(countTokens(results));
    lifetime.check();
    return results;
  };
  if (!wire.isStream) {
    const results = finish(await Promise.all(wire.requests.map((_, i) => generate(undefined, i))));
    return sendJson(context, wire.respond(results, engine));
  }
  const encoder = wire.stream(engine);
  return eventStream(
    context,
    lifetime,
    async (write) => {
      write(encoder.start());
      const running = wire.requests.map((_, i) => generate((delta) => write(encoder.delta(delta, i)), i));
      write(encoder.end(finish(await Promise.all(running))));
    },
    (error) => {
      const requestError = toRequestError(error);
      if (requestError.status >= 500) onError?.(requestError.cause ?? error);
      return format.errorEvent(requestError);
    },
  );
}
