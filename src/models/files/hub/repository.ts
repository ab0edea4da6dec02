import { LlamaGymError } from "../../../core/errors.js";
import { errorMessage } from "../file-errors.js";
import { hubFetch, TransientError, withRetries, unreachableError, type RequestTarget } from "./hub-fetch.js";
import type { HubConfig } from "./hub-config.js";

/** How often a question is asked again: a cached model need not wait long when there is no network. */
const MAX_API_RETRIES = 2;

/** A file in a model's repository. */
export interface RemoteFile {
  /** The path in the repository. */
  readonly path: string;
  readonly size: number;
  /** The name of its blob in the cache: the SHA-256 of a large file, git's SHA-1 of a small one. */
  readonly hash: string;
}

/** A fetch for \@huggingface/hub: with the token, timeouts (for the whole answer) and errors of this folder. */
function createFetch(config: HubConfig, target: RequestTarget): typeof fetch {
  return async (input, init) => {
    const signal = AbortSignal.timeout(config.responseTimeoutMs);
    const url = input instanceof Request ? input.url : input;
    const response = await hubFetch(config, target, url, { ...init, signal });
    const body = await response.arrayBuffer().catch((error: unknown) => {
      throw new TransientError(`its answer broke off (${errorMessage(error)})`, { cause: error });
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

/** The error for whatever went wrong while an answer was read. */
function unexpectedAnswer(config: HubConfig, target: RequestTarget, error: unknown): unknown {
  if (error instanceof LlamaGymError || error instanceof TransientError) return error;
  return unreachableError(config, target, `its answer was not understood (${errorMessage(error)})`, error);
}

/** The commit that a revision stands for. Throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE. */
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
  throw unreachableError(config, target, "its answer names no commit");
}

/** Whether a revision is a whole commit hash. */
export function isCommitHash(revision: string): boolean {
  return /^[0-9a-f]{40}$/u.test(revision);
}

/**
 * All files of a model at a commit. Throws HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE (also for file names that
 * would lead out of the cache).
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
      throw unreachableError(config, target, `it lists a file that cannot be kept (${JSON.stringify(unsafe)})`);
    }
    return files;
  });
}

function isSafeFile({ path, size, hash }: RemoteFile): boolean {
  const parts = path.split("/");
  const staysInside = parts.every((part) => part !== "" && part !== "." && part !== ".." && !/[\\:\0]/u.test(part));
  return staysInside && Number.isSafeInteger(size) && size >= 0 && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u.test(hash);
}
