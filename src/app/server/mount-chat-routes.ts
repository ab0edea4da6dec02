import type { Context, Hono } from "hono";
import type { ChatDelta, ChatEngine, ChatRequest, ChatResult } from "./chat-engine.js";
import { printWarning } from "../../core/terminal-text.js";
import { eventStream } from "./event-stream.js";
import { anthropicMessages, parseCountTokens } from "./anthropic-messages.js";
import { openAiChat } from "./openai-chat.js";
import { openAiCompletions } from "./openai-completions.js";
import { openAiResponses } from "./openai-responses.js";
import { sendJson, setHeader } from "./node-bindings.js";
import { readJsonBody } from "./read-json-body.js";
import { toRequestError, type RequestError } from "./request-error.js";
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

/**
 * Adds the routes of all APIs for completions to an app, for the engines that `engineFor` finds.
 */
export function mountChatRoutes(app: Hono, engineFor: EngineLookup, options: ChatRouteOptions = {}): void {
  for (const format of WIRE_FORMATS) {
    app.post(format.path, async (context) => {
      try {
        const wire = format.parse(await readJsonBody(context, { maxCommas: format.maxCommas }));
        noteIgnored(wire.ignoredFields, format, context);
        return await respond(wire, format, await engineFor(wire.model, context), context, options);
      } catch (error) {
        return errorResponse(error, format, context, options);
      }
    });
  }
  mountCountTokens(app, engineFor, options);
}

function mountCountTokens(app: Hono, engineFor: EngineLookup, options: ChatRouteOptions): void {
  app.post(`${anthropicMessages.path}/count_tokens`, async (context) => {
    try {
      const { request, model, ignoredFields } = parseCountTokens(await readJsonBody(context));
      noteIgnored(ignoredFields, anthropicMessages, context);
      const engine = await engineFor(model, context);
      return context.json({ input_tokens: await engine.countPromptTokens(request) });
    } catch (error) {
      return errorResponse(error, anthropicMessages, context, options);
    }
  });
}

/** Formats an error as the API at a path does; OpenAI's form for other paths. */
export function formatErrorAt(path: string, error: RequestError): object {
  const format = WIRE_FORMATS.find((each) => path.endsWith(each.path) || path.includes(`${each.path}/`));
  return (format ?? openAiChat).formatError(error);
}

/** Header of a response with the fields of its request that change nothing. */
const IGNORED_HEADER = "x-llamagym-ignored-fields";
/** Maximum number of ignored fields that are named, and their length; clients choose both. */
const MAX_IGNORED = 20;
const MAX_FIELD_LENGTH = 100;
/** Fields that were warned about, and their maximum number. */
const warnedFields = new Set<string>();
const MAX_WARNED_FIELDS = 100;

/** Names the fields that a request has in vain: in a header, and the first time in a warning. */
function noteIgnored(fields: readonly string[], { path }: WireFormat, context: Context): void {
  if (fields.length === 0) return;
  const names = fields.slice(0, MAX_IGNORED).map((name) => encodeURIComponent(name.slice(0, MAX_FIELD_LENGTH)));
  setHeader(context, IGNORED_HEADER, names.join(", "));
  for (const name of names) {
    const field = `${path} ${name}`;
    if (warnedFields.size >= MAX_WARNED_FIELDS || warnedFields.has(field)) continue;
    warnedFields.add(field);
    printWarning(`Requests to ${path} have the field ${name}, which changes nothing here.`);
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
  const generate = async (request: ChatRequest, onDelta?: (delta: ChatDelta) => void): Promise<ChatResult> =>
    engine.generate({ ...request, signal }, onDelta);
  const finish = (results: readonly ChatResult[]) => {
    lifetime.finish();
    metrics?.countTokens(countTokens(results));
    lifetime.check();
    return results;
  };
  if (!wire.isStream) {
    const results = finish(await Promise.all(wire.requests.map((request) => generate(request))));
    return sendJson(context, wire.respond(results, engine));
  }
  const encoder = wire.stream(engine);
  return eventStream(
    context,
    lifetime,
    async (write) => {
      // Formats whose streams begin with an event have one prompt.
      const onPrompt = (tokenCount: number) => write(encoder.start(tokenCount));
      const running = wire.requests.map((request, i) =>
        generate({ ...request, ...(i === 0 && { onPrompt }) }, (delta) => write(encoder.delta(delta, i))),
      );
      write(encoder.end(finish(await Promise.all(running))));
    },
    (error) => {
      const requestError = toRequestError(error);
      if (requestError.status >= 500) onError?.(requestError.cause ?? error);
      return format.errorEvent(requestError);
    },
  );
}
