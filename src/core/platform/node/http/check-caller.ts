import { hostname } from "node:os";
import { isIP } from "node:net";
import type { IncomingHttpHeaders } from "node:http";

/** Which requests a server answers. */
export interface CallerRules {
  /** Host names of this server in addition to those of this machine. */
  readonly hosts?: readonly string[];
  /**
   * Whether pages of other servers on this machine may use the server, such as an inspector on
   * another port; by default its own pages alone. No server here lets pages read its responses
   * (CORS), so this concerns WebSocket connections and what browsers send without asking.
   */
  readonly acceptsLocalPages?: boolean;
}

/** Why a request is refused. */
export interface CallerRefusal {
  readonly reason: "host" | "origin";
  readonly message: string;
}

const LOCAL_ORIGIN = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

/**
 * Returns why a request must not be answered; undefined if it may be. Web pages reach servers on
 * this machine by letting their names point to it (DNS rebinding), which the Host header shows, and
 * by requests that browsers send without asking the server, which the Origin header shows. A page
 * can let a name point here, but not an address.
 */
export function refuseCaller(
  { host = "", origin }: Pick<IncomingHttpHeaders, "host" | "origin">,
  { hosts = [], acceptsLocalPages = false }: CallerRules = {},
): CallerRefusal | undefined {
  const name = host
    .replace(/:\d+$/, "")
    .replace(/^\[|\]$/g, "")
    .toLowerCase();
  const names = ["localhost", hostname(), ...hosts].map((each) => each.toLowerCase());
  if (isIP(name) === 0 && !names.includes(name))
    return { reason: "host", message: `This server does not answer for the host name ${JSON.stringify(name)}.` };
  const isOwn = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
  if (isOwn || (acceptsLocalPages && LOCAL_ORIGIN.test(origin))) return undefined;
  return { reason: "origin", message: "Web pages of other sites may not use this server." };
}
