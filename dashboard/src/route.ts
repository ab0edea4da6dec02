import { useEffect, useState } from "preact/hooks";

/** A view and its parameters, as written after `#` in the address: `#/curves?run=a&run=b`. */
export interface Route {
  readonly view: string;
  readonly params: URLSearchParams;
}

/** What a view receives. */
export interface ViewProps {
  readonly route: Route;
}

function parseRoute(hash: string): Route {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return { view: path === "" ? "runs" : path, params: new URLSearchParams(query) };
}

/** Returns the address of a view; parameters that are undefined are left out. */
export function linkTo(
  view: string,
  params: Readonly<Record<string, string | number | readonly string[] | undefined>> = {},
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (Array.isArray(value)) for (const item of value) query.append(name, String(item));
    else if (value !== undefined) query.set(name, String(value));
  }
  const text = query.toString();
  return text === "" ? `#/${view}` : `#/${view}?${text}`;
}

/** Opens a view. `replace` leaves no entry in the history. */
export function navigate(link: string, { replace = false } = {}): void {
  if (!replace) location.hash = link;
  else {
    history.replaceState(null, "", link);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  }
}

/** Returns the open view and follows the address. */
export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = (): void => setHash(location.hash);
    window.addEventListener("hashchange", update);
    return () => window.removeEventListener("hashchange", update);
  }, []);
  return parseRoute(hash);
}
