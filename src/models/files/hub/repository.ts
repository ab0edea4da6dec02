import { z } from "zod";
import { concatBytes, decodeUtf8 } from "../../../core/bytes.js";
import { errorMessage, LlamaGymError } from "../../../core/errors.js";
import { asJsonObject, parseBoundedJson } from "../../../core/json.js";
import {
  getContentType,
  hubFetch,
  readChunks,
  TransientError,
  unreachableError,
  withRetries,
  type RequestTarget,
} from "./hub-fetch.js";
import type { HubConfig } from "./hub-config.js";

/** Low, so that a cached model opens quickly without a network. */
const MAX_API_RETRIES = 2;

/** A path that stays inside the cache folder. */
const pathSchema = z
  .string()
  .max(1024)
  .refine((path) => path.split("/").every((part) => !["", ".", ".."].includes(part) && !/[\\:\0]/u.test(part)));

const fileSchema = z
  .object({
    path: pathSchema,
    size: z.int().min(0),
    /** Blob name: SHA-256 of a large file, git's SHA-1 of a small one. */
    hash: z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u),
  })
  .readonly();

/** A file in a model's repository. */
export type RemoteFile = z.infer<typeof fileSchema>;

/**
 * Limits of what one listing (or other query) may send: the largest repositories have some 10,000
 * files at 300 bytes each.
 */
const MAX_PAGES = 100;
const MAX_API_BYTES = 64 * 2 ** 20;
const MAX_API_NODES = 4_000_000;

/**
 * Queries the hub's API with retries and parses its pages, which link to each other. @throws
 * HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE.
 */
async function query<Page>(
  config: HubConfig,
  target: RequestTarget,
  path: string,
  parsePage: (json: unknown) => Page,
): Promise<Page[]> {
  return withRetries(config, target, MAX_API_RETRIES, async () => {
    const pages: Page[] = [];
    let remainingBytes = MAX_API_BYTES;
    let url: string | undefined = `${config.endpoint}/api/models/${target.id}/${path}`;
    while (url !== undefined) {
      if (pages.length === MAX_PAGES)
        throw unreachableError(config, target, `its listing has more than ${MAX_PAGES} pages`);
      const response = await hubFetch(config, target, url);
      const bytes = await readBody(config, target, response, remainingBytes);
      remainingBytes -= bytes.length;
      try {
        pages.push(parsePage(parseBoundedJson(decodeUtf8(bytes), MAX_API_NODES)));
      } catch (error) {
        if (error instanceof LlamaGymError) throw error;
        throw unreachableError(config, target, `its response is invalid (${errorMessage(error)})`, error);
      }
      url = /<(https?:\/\/[^>]+)>;\s+rel="next"/u.exec(response.headers.get("link") ?? "")?.[1];
    }
    return pages;
  });
}

async function readBody(
  config: HubConfig,
  target: RequestTarget,
  response: Response,
  maxBytes: number,
): Promise<Uint8Array> {
  const type = getContentType(response);
  const deadline = performance.now() + config.responseTimeoutMs;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of readChunks(response, config.responseTimeoutMs)) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes)
      throw unreachableError(config, target, `its response (${type}) is longer than ${MAX_API_BYTES} bytes`);
    if (performance.now() > deadline)
      throw new TransientError(`no complete response within ${config.responseTimeoutMs / 1000} s`);
  }
  if (type === "text/html") throw unreachableError(config, target, `it sent a web page (${type}) instead of JSON`);
  return concatBytes(chunks);
}

/** Resolves a revision to a commit. @throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE. */
export async function resolveCommit(config: HubConfig, id: string, revision: string): Promise<string> {
  const target = { id, revision };
  const path = `revision/${encodeURIComponent(revision)}?expand=sha`;
  const [sha] = await query(config, target, path, (json) => asJsonObject(json)?.sha);
  if (typeof sha === "string" && isCommitHash(sha)) return sha;
  throw unreachableError(config, target, "its response names no commit");
}

export function isCommitHash(revision: string): boolean {
  return /^[0-9a-f]{40}$/u.test(revision);
}

/**
 * Lists a model's files at a commit. @throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE (also
 * for paths that would escape the cache).
 */
export async function listRepositoryFiles(config: HubConfig, id: string, commit: string): Promise<RemoteFile[]> {
  const target = { id, revision: commit };
  const parseEntry = (json: unknown): RemoteFile | undefined => {
    const { type, path, size, oid, lfs } = asJsonObject(json) ?? {};
    if (type !== "file") return undefined;
    const large = asJsonObject(lfs);
    const file = fileSchema.safeParse({ path, size: large?.size ?? size, hash: large?.oid ?? oid });
    if (file.success) return file.data;
    const fields = file.error.issues.map((issue) => issue.path.join(".")).join(", ");
    throw unreachableError(config, target, `it lists a file with an unsafe or invalid ${fields}`);
  };
  const parsePage = (json: unknown): (RemoteFile | undefined)[] => {
    if (Array.isArray(json)) return json.map(parseEntry);
    throw unreachableError(config, target, "its response is invalid (it is not a list)");
  };
  const pages = await query(config, target, `tree/${commit}?recursive=true`, parsePage);
  return pages.flat().filter((file) => file !== undefined);
}
