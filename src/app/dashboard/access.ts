import { randomBytes } from "node:crypto";
import { getCookie, setCookie } from "hono/cookie";
import type { Context, MiddlewareHandler } from "hono";
import { refuseCaller } from "../../core/platform/node/http/check-caller.js";
import { isSameSecret } from "../../core/platform/node/http/is-same-secret.js";
import type { ApiError } from "./api.js";

/** The page loads scripts, styles and data from its own server only; nothing inline. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const HEADERS = {
  "Content-Security-Policy": CONTENT_SECURITY_POLICY,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cache-Control": "no-store",
};

/** Returns a token of 192 random bits. */
export function createToken(): string {
  return randomBytes(24).toString("base64url");
}

/**
 * Lets only the page's own requests pass: the Host names this server (which a page of another site
 * with a rebound name does not), the Origin of a request that changes something is the page's, and
 * the token is in the cookie or in an Authorization header. The token in the link's query becomes
 * the cookie.
 */
export function controlAccess(token: string, hosts: readonly string[]): MiddlewareHandler {
  return async (c, next) => {
    for (const [name, value] of Object.entries(HEADERS)) c.header(name, value);
    const host = c.req.header("host") ?? "";
    const refusal = refuseCaller({ host, origin: c.req.header("origin") }, { hosts });
    if (refusal?.reason === "host") return refuse(c, 421, "HOST_REFUSED", refusal.message);
    if (refusal !== undefined) return refuse(c, 403, "ORIGIN_REFUSED", refusal.message);
    const cookie = cookieName(host);
    const given = c.req.query("token");
    if (given !== undefined && isSameSecret(given, token)) {
      setCookie(c, cookie, token, { httpOnly: true, sameSite: "Strict", path: "/" });
      return c.redirect("/");
    }
    const bearer = c.req.header("authorization")?.replace(/^Bearer /i, "");
    if (!isSameSecret(getCookie(c, cookie) ?? bearer ?? "", token))
      return refuse(c, 401, "TOKEN_MISSING", "Open the link that llamagym dashboard printed: it contains the token.");
    return next();
  };
}

/** Cookies do not distinguish ports: two dashboards on one host need two names. */
function cookieName(host: string): string {
  return `llamagym-${/:(\d+)$/.exec(host)?.[1] ?? "80"}`;
}

/** Answers a refused request: an error in JSON for the API, otherwise a sentence. */
function refuse(c: Context, status: 401 | 403 | 421, code: string, message: string): Response {
  if (c.req.path.startsWith("/api/")) return c.json({ code, message } satisfies ApiError, status);
  return c.text(message, status);
}
