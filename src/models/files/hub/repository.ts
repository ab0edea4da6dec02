import { z } from "zod";
import { errorMessage, LlamaGymError } from "../../../core/errors.js";
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

/** Limits of what one listing (or other query) may send: the largest repositories have some 10,000 files at 300 bytes each. */
const MAX_PAGES = 500;
const MAX_API_BYTES = 64 * 2 ** 20;

/** Creates a fetch for \@huggingface/hub with this folder's token, timeouts, errors and limits. */
function createFetch(config: HubConfig, target: RequestTarget): typeof fetch {
  let pages = 0;
  let bytes = 0;
  return async (input, init) => {
    pages += 1;
    if (pages > MAX_PAGES) throw unreachableError(config, target, `its listing has more than ${MAX_PAGES} pages`);
    const response = await hubFetch(config, target, input instanceof Request ? input.url : input, init);
    const type = getContentType(response);
    const deadline = performance.now() + config.responseTimeoutMs;
    const chunks: Uint8Array[] = [];
    for await (const chunk of readChunks(response, config.responseTimeoutMs)) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_API_BYTES)
        throw unreachableError(config, target, `its response (${type}) is longer than ${MAX_API_BYTES} bytes`);
      if (performance.now() > deadline)
        throw new TransientError(`no complete response within ${config.responseTimeoutMs / 1000} s`);
    }
    const body = new Blob(chunks);
    if (type === "text/html") throw unreachableError(config, target, `it sent a web page (${type}) instead of JSON`);
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

/** Runs a query of \@huggingface/hub with retries. @throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE. */
async function query<Result>(
  config: HubConfig,
  target: RequestTarget,
  run: (access: { hubUrl: string; fetch: typeof fetch }) => Promise<Result>,
): Promise<Result> {
  return withRetries(config, target, MAX_API_RETRIES, async () => {
    try {
      return await run({ hubUrl: config.endpoint, fetch: createFetch(config, target) });
    } catch (error) {
      if (error instanceof LlamaGymError || error instanceof TransientError) throw error;
      throw unreachableError(config, target, `its response is invalid (${errorMessage(error)})`, error);
    }
  });
}

/** Resolves a revision to a commit. @throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE. */
export async function resolveCommit(config: HubConfig, id: string, revision: string): Promise<string> {
  const target = { id, revision };
  const { modelInfo } = await import("@huggingface/hub");
  const { sha } = await query(config, target, async (access) =>
    modelInfo({ ...access, name: id, revision, additionalFields: ["sha"] }),
  );
  if (typeof sha === "string" && isCommitHash(sha)) return sha;
  throw unreachableError(config, target, "its response names no commit");
}

export function isCommitHash(revision: string): boolean {
  return /^[0-9a-f]{40}$/u.test(revision);
}

/**
 * Lists a model's files at a commit. @throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE (also for paths that would escape
 * the cache).
 */
export async function listRepositoryFiles(config: HubConfig, id: string, commit: string): Promise<RemoteFile[]> {
  const target = { id, revision: commit };
  const { listFiles } = await import("@huggingface/hub");
  return query(config, target, async (access) => {
    const files: RemoteFile[] = [];
    const repo = { type: "model", name: id } as const;
    for await (const entry of listFiles({ ...access, repo, revision: commit, recursive: true })) {
      if (entry.type !== "file") continue;
      const { path, size, oid, lfs } = entry;
      const file = fileSchema.safeParse({ path, size: lfs?.size ?? size, hash: lfs?.oid ?? oid });
      if (!file.success) {
        const fields = file.error.issues.map((issue) => issue.path.join(".")).join(", ");
        throw unreachableError(config, target, `it lists file ${files.length + 1} with an unsafe or invalid ${fields}`);
      }
      files.push(file.data);
    }
    return files;
  });
}
