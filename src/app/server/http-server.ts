import { Hono, type MiddlewareHandler } from "hono";
import { routePath } from "hono/route";
import { invalidArgument } from "../../core/errors.js";
import { checkApiKey } from "../../core/server-address.js";
import { checkSettings } from "../../core/settings.js";
import { STREAM_END } from "./event-stream.js";
import { refuseCaller } from "../../core/platform/node/http/check-caller.js";
import { isSameSecret } from "../../core/platform/node/http/is-same-secret.js";
import { listenWithApp } from "./listen.js";
import { DEFAULT_TIMEOUT_MS, formatErrorAt } from "./mount-chat-routes.js";
import { receiveBodies } from "./read-json-body.js";
import { RequestError, toRequestError } from "./request-error.js";
import { serverOptions } from "./server-options.js";
import { ServerMetrics } from "./server-metrics.js";

/** Options of an HTTP server. */
export interface HttpServerOptions {
  /** Address to listen on. Default 127.0.0.1; any other needs an `apiKey`. */
  readonly host?: string;
  /** Default 8080; 0 takes a free one. */
  readonly port?: number;
  /** Key that clients must send as a bearer token or as x-api-key. */
  readonly apiKey?: string;
  /**
   * Maximum number of requests that run or wait, which count once their body has arrived; more are
   * answered with status 429. Default 1024.
   */
  readonly maxRequests?: number;
}

/** A server that listens. */
export interface RunningServer {
  /** Such as http://127.0.0.1:8080. */
  readonly url: string;
  readonly metrics: ServerMetrics;
  /**
   * Stops accepting requests, waits for those that run, and closes their connections after
   * `graceMs`. Default 30 seconds.
   */
  close(graceMs?: number): Promise<void>;
}

const LOOPBACK_HOSTS = ["127.0.0.1", "localhost", "::1", "[::1]"];

/**
 * Milliseconds that an idle connection stays open; clients reuse connections that a shorter time
 * would close under them.
 */
const KEEP_ALIVE_MS = 65_000;

/** Seconds after which a client that was refused may try again. */
const RETRY_AFTER_SECONDS = 1;

/** Idle connections are closed after the longest request and this. */
const IDLE_MARGIN_MS = 60_000;

/**
 * Starts an HTTP server with the routes that `addRoutes` adds, with /health and /metrics, a limit
 * on requests and, with an API key, authentication.
 * @throws INVALID_ARGUMENT for a host other than this machine's without an API key and for an option
 * out of range, INVALID_STATE if the port is taken.
 */
export async function startHttpServer(
  options: HttpServerOptions & {
    /** Maximum bytes of a request's body. Default 8 MiB. */
    readonly maxBodyBytes?: number;
  },
  addRoutes: (app: Hono, metrics: ServerMetrics) => void,
): Promise<RunningServer> {
  checkSettings(serverOptions, options);
  const { host = serverOptions.host.default, port = serverOptions.port.default, apiKey, maxBodyBytes } = options;
  // A waiting request takes about 100 KB.
  const { maxRequests = serverOptions.maxRequests.default } = options;
  const isLocal = LOOPBACK_HOSTS.includes(host);
  if (!isLocal && apiKey === undefined)
    throw invalidArgument(
      `Listening on ${host} needs an API key, because other machines reach it. Set \`apiKey\` (--api-key).`,
    );
  const metrics = new ServerMetrics();
  const app = new Hono();
  app.get("/health", (context) => context.json({ status: "ok" }));
  if (apiKey === undefined) app.use(checkCaller);
  else app.use(requireApiKey(apiKey));
  app.get("/metrics", (context) => context.text(metrics.format()));
  app.use(receiveBodies(maxBodyBytes), limitRequests(maxRequests, metrics));
  addRoutes(app, metrics);
  app.notFound((context) => {
    const { method, path } = context.req;
    const error = new RequestError(404, `There is no ${method} ${path}.${suggestRoute(app, method, path)}`);
    return context.json(formatErrorAt(path, error), 404);
  });
  app.onError((error, context) => {
    const requestError = toRequestError(error);
    if (requestError.retryAfter !== undefined) context.header("retry-after", String(requestError.retryAfter));
    return context.json(formatErrorAt(context.req.path, requestError), requestError.status as 400);
  });
  const { server, url } = await listenWithApp(app, { host, port });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.setTimeout(DEFAULT_TIMEOUT_MS + IDLE_MARGIN_MS);
  return {
    url,
    metrics,
    close: (graceMs = 30_000) =>
      new Promise((resolve) => {
        const timer = setTimeout(() => server.closeAllConnections(), graceMs);
        // Connections become idle when their requests are answered.
        const idleTimer = setInterval(() => server.closeIdleConnections(), 100);
        server.close(() => {
          clearTimeout(timer);
          clearInterval(idleTimer);
          resolve();
        });
      }),
  };
}

/** Refuses requests of web pages; an API key keeps them out as well. */
const checkCaller: MiddlewareHandler = async (context, next) => {
  const refusal = refuseCaller({ host: context.req.header("host"), origin: context.req.header("origin") });
  if (refusal !== undefined) throw new RequestError(403, `${refusal.message} Set an API key to allow it.`);
  await next();
};

function requireApiKey(apiKey: string): MiddlewareHandler {
  checkApiKey(apiKey, "`apiKey`");
  return async (context, next) => {
    const bearer = /^Bearer (.+)$/i.exec(context.req.header("authorization") ?? "")?.[1];
    const given = bearer ?? context.req.header("x-api-key") ?? "";
    if (!isSameSecret(given, apiKey))
      throw new RequestError(401, "The API key is missing or wrong.", { code: "invalid_api_key" });
    await next();
  };
}

function limitRequests(maxRequests: number, metrics: ServerMetrics): MiddlewareHandler {
  return async (context, next) => {
    if (metrics.running >= maxRequests) {
      throw new RequestError(429, `The server has ${maxRequests} requests already. Try again later.`, {
        code: "too_many_requests",
        retryAfter: RETRY_AFTER_SECONDS,
      });
    }
    metrics.running++;
    const startTime = performance.now();
    await next();
    metrics.countRequest(routePath(context, -1), context.res.status, (performance.now() - startTime) / 1000);
    const streamEnd = (context.get(STREAM_END) as Promise<void> | undefined) ?? Promise.resolve();
    void streamEnd.then(() => metrics.running--);
  };
}

/**
 * Names the routes that a path without its beginning may stand for: /chat/completions for
 * /v1/chat/completions.
 */
function suggestRoute(app: Hono, method: string, path: string): string {
  const routes = app.routes.filter((route) => route.method === method && route.path.endsWith(path));
  const names = [...new Set(routes.map((route) => `${method} ${route.path}`))];
  return names.length === 0 || path === "/" ? "" : ` Did you mean ${names.join(" or ")}?`;
}
