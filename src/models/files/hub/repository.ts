import { LlamaGymError } from "../../../core/errors.js";
import { errorMessage } from "../file-errors.js";
import { hubFetch, TransientError, withRetries, unreachableError, type RequestTarget } from "./hub-fetch.js";
import type { HubConfig } from "./hub-config.js";

/** Low, so that a cached model opens quickly without a network. */
const MAX_API_RETRIES = 2;

/** A file in a model's repository. */
export interface RemoteFile {
  /** Path in the repository. */
  readonly path: string;
  readonly size: number;
  /** Blob name: SHA-256 of a large file, git's SHA-1 of a small one. */
  readonly hash: string;
}

/** Creates a fetch for \@huggingface/hub with this folder's token, timeouts and errors. */
function createFetch(config: HubConfig, target: RequestTarget): typeof fetch {
  return async (input, init) => {
    const signal = AbortSignal.timeout(config.responseTimeoutMs);
    const url = input instanceof Request ? input.url : input;
    const response = await hubFetch(config, target, url, { ...init, signal });
    const body = await response.arrayBuffer().catch((error: unknown) => {
      throw new TransientError(`its response was interrupted (${errorMessage(error)})`, { cause: error });
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

/** Converts an error while reading a response. */
function unexpectedAnswer(config: HubConfig, target: RequestTarget, error: unknown): unknown {
  if (error instanceof LlamaGymError || error instanceof TransientError) return error;
  return unreachableError(config, target, `its response is invalid (${errorMessage(error)})`, error);
}

/** Resolves a revision to a commit. @throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE. */
export async function resolveCommit(config: HubConfig, id: string, revision: string): Promise<string> {
  const target = { id, revision };
  const { modelInfo } = await import("@huggingface/hub");
  const { sha } = await withRetries(config, target, MAX_API_RETRIES, async () => {
    try {
      const params = { name: id, revision, hubUrl: config.endpoint, fetch: createFetch(config, target) };
      return await modelInfo({ ...params, additionalFields: ["sha"] });
    } catch (error) {
      throw unexpectedAnswer(config, target, error);
    }
  });
  if (typeof sha === "string" && isCommitHash(sha)) return sha;
  throw unreachableError(config, target, "its response names no commit");
}

/** Whether a revision is a full commit hash. */
export function isCommitHash(revision: string): boolean {
  return /^[0-9a-f]{40}$/u.test(revision);
}

/**
 * Lists a model's files at a commit. @throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE (also
 * for paths that would escape the cache).
 */
export async function listRepositoryFiles(config: HubConfig, id: string, commit: string): Promise<RemoteFile[]> {
  const target = { id, revision: commit };
  const { listFiles } = await import("@huggingface/hub");
  const params = {
    repo: { type: "model" as const, name: id },
    revision: commit,
    recursive: true,
    hubUrl: config.endpoint,
    fetch: createFetch(config, target),
  };
  return withRetries(config, target, MAX_API_RETRIES, async () => {
    const files: RemoteFile[] = [];
    try {
      for await (const { type, path, size, oid, lfs } of listFiles(params)) {
        if (type === "file") files.push({ path, size: lfs?.size ?? size, hash: lfs?.oid ?? oid ?? "" });
      }
    } catch (error) {
      throw unexpectedAnswer(config, target, error);
    }
    const unsafe = files.find((file) => !isSafeFile(file));
    if (unsafe !== undefined) {
      throw unreachableError(config, target, `it lists an unsafe file (${JSON.stringify(unsafe)})`);
    }
    return files;
  });
}

function isSafeFile({ path, size, hash }: RemoteFile): boolean {
  const parts = path.split("/");
  const staysInside = parts.every((part) => part !== "" && part !== "." && part !== ".." && !/[\\:\0]/u.test(part));
  return staysInside && Number.isSafeInteger(size) && size >= 0 && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u.test(hash);
}
