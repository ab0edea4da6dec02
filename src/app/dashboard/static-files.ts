import { readdir, readFile } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";
import { assets } from "#platform";
import type { Handler } from "hono";

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
  ".json": "application/json",
};

const NOT_BUILT = "The dashboard's page is not built. Run npm run build in the repository.\n";

/** A file of the page in memory. */
interface PageFile {
  readonly type: string;
  readonly body: Buffer<ArrayBuffer>;
  readonly compressed: Buffer<ArrayBuffer>;
}

/** Folder of the built page. */
export function pageFolder(): string {
  return assets.path("dist/dashboard");
}

/**
 * Reads the built page into memory and returns a handler that serves exactly these files; other
 * paths get index.html.
 */
export async function openPage(folder = pageFolder()): Promise<Handler> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = new Map<string, PageFile>();
  for (const entry of names) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const body = await readFile(path);
    const type = CONTENT_TYPES[extname(path)] ?? "application/octet-stream";
    files.set(`/${relative(folder, path).split(sep).join("/")}`, { type, body, compressed: gzipSync(body) });
  }
  return (c) => {
    const file = files.get(c.req.path) ?? files.get("/index.html");
    if (file === undefined) return c.text(NOT_BUILT, 503);
    c.header("Content-Type", file.type);
    // Names of built assets contain a hash of their contents.
    if (c.req.path.startsWith("/assets/")) c.header("Cache-Control", "private, max-age=31536000, immutable");
    if (!/\bgzip\b/.test(c.req.header("accept-encoding") ?? "")) return c.body(file.body);
    c.header("Content-Encoding", "gzip");
    return c.body(file.compressed);
  };
}

/** Serves a page of docs/ as text, for links of explanations. */
export const openDocs: Handler = async (c) => {
  const text = await readFile(join(assets.path("docs"), c.req.param("page") ?? ""), "utf8").catch(() => undefined);
  return text === undefined ? c.text("There is no such page.", 404) : c.text(text);
};
