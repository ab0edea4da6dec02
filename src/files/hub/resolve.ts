import { LlamaGymError } from "../../errors.js";
import { readWeightMap } from "../safetensors/index.js";
import { ModelCache } from "./cache.js";
import { fetchIntoCache, type DownloadContext, type DownloadProgress } from "./download.js";
import { localModel } from "./local.js";
import type { ModelLocation } from "./location.js";
import { parseReference } from "./reference.js";
import { commitOf, filesOf, isCommit, type RemoteFile } from "./repository.js";
import { selectFiles, type Selection } from "./selection.js";
import { hubSettings, type HubOptions, type HubSettings } from "./settings.js";

/** How a model is looked for. */
export interface ResolveOptions extends HubOptions {
  /** A branch, tag or commit on the hub; "main" when not given. */
  readonly revision?: string;
  /** A GGUF file of the repository or folder: its name, or its quantisation (Q4_K_M). */
  readonly file?: string;
  /** Told about each file's download, some ten times a second. */
  readonly onProgress?: (progress: DownloadProgress) => void;
}

/** How many files are fetched at a time. */
const PARALLEL_FILES = 4;

/**
 * Finds a model: a folder or GGUF file on this machine, or a hub id (`owner/name`, `owner/name:file.gguf`,
 * `owner/name#Q4_K_M`), whose files are fetched into the Hugging Face cache unless they are there. A model that is whole
 * in the cache is found without a network.
 * Throws FILE_NOT_FOUND, INVALID_ARGUMENT, FORMAT_UNSUPPORTED, HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE,
 * HUB_OFFLINE, FILE_WRITE_FAILED, FILE_CORRUPT.
 */
export async function resolveModel(idOrPath: string, options: ResolveOptions = {}): Promise<ModelLocation> {
  const local = await localModel(idOrPath, options.file);
  return local ?? resolveFromHub(idOrPath, options, await hubSettings(options));
}

/** The part of `resolveModel` that concerns the hub, with the settings given. */
export async function resolveFromHub(
  idOrPath: string,
  options: ResolveOptions,
  settings: HubSettings,
): Promise<ModelLocation> {
  const reference = parseReference(idOrPath);
  if (reference === undefined) {
    throw new LlamaGymError(
      "FILE_NOT_FOUND",
      `${idOrPath} does not exist, and it is not a hub id (owner/name). Check the path.`,
    );
  }
  const { id } = reference;
  const { revision = "main", file = reference.file, onProgress } = options;
  const cache = new ModelCache(settings.cacheDir, id);
  const request: Request = { id, revision, file, cache, settings, onProgress };
  if (settings.offline || isCommit(revision)) {
    const cached = await fromCache(request);
    if (cached !== undefined) return cached;
    if (settings.offline) {
      throw new LlamaGymError(
        "HUB_OFFLINE",
        `${idOrPath} is neither a path nor whole in the cache (${cache.folder}), and HF_HUB_OFFLINE forbids to fetch it. ` +
          "Unset HF_HUB_OFFLINE, or give the path of a local folder.",
      );
    }
  }
  try {
    return await fromHub(request);
  } catch (error) {
    const noNetwork = error instanceof LlamaGymError && error.code === "HUB_UNREACHABLE";
    const cached = noNetwork ? await fromCache(request) : undefined;
    if (cached === undefined) throw error;
    return cached;
  }
}

interface Request {
  readonly id: string;
  readonly revision: string;
  readonly file: string | undefined;
  readonly cache: ModelCache;
  readonly settings: HubSettings;
  readonly onProgress: ResolveOptions["onProgress"];
}

function located({ id, cache }: Request, commit: string, { kind, files }: Selection): ModelLocation {
  const path = cache.snapshotPath(commit, kind === "gguf" ? files[0] : "");
  return { kind, path, id, revision: commit };
}

/** The model in the cache, if all that is needed of it is there. */
async function fromCache(request: Request): Promise<ModelLocation | undefined> {
  const { cache, id, file, revision } = request;
  const commit = await cache.commitOf(revision);
  if (commit === undefined) return undefined;
  const paths = await cache.paths(commit);
  try {
    const selection = selectFiles(id, paths, file);
    const needed = [...selection.files, ...(await shardsOf(request, commit, selection)), ...partsOf(selection)];
    return needed.every((path) => paths.includes(path)) ? located(request, commit, selection) : undefined;
  } catch {
    return undefined;
  }
}

/** All parts of a split GGUF file, by the name of the first. */
function partsOf({ kind, files }: Selection): string[] {
  const split = kind === "gguf" ? /^(.*)-\d{5}-of-(\d{5})\.gguf$/u.exec(files[0]) : null;
  if (split === null) return [];
  const [, stem, count] = split;
  return Array.from({ length: Number(count) }, (_, i) => `${stem}-${String(i + 1).padStart(5, "0")}-of-${count}.gguf`);
}

async function shardsOf({ cache }: Request, commit: string, { index }: Selection): Promise<string[]> {
  if (index === undefined) return [];
  return [...new Set((await readWeightMap(cache.snapshotPath(commit, index))).values())];
}

async function fromHub(request: Request): Promise<ModelLocation> {
  const { id, revision, file, cache, settings, onProgress } = request;
  const commit = await commitOf(settings, id, revision);
  const remote = await filesOf(settings, id, commit);
  const paths = remote.map(({ path }) => path);
  const selection = selectFiles(id, paths, file);
  const context: DownloadContext = { settings, cache, id, commit, onProgress };
  const byPath = new Map(remote.map((entry) => [entry.path, entry]));
  await fetchAll(context, byPath, selection.files);
  await fetchAll(context, byPath, await shardsOf(request, commit, selection));
  await cache.rememberCommit(revision, commit);
  return located(request, commit, selection);
}

/** Fetches files, some at a time; the first failure stops those that have not begun. */
async function fetchAll(
  context: DownloadContext,
  remote: ReadonlyMap<string, RemoteFile>,
  paths: readonly string[],
): Promise<void> {
  const waiting = paths.map((path) => {
    const file = remote.get(path);
    if (file !== undefined) return file;
    throw new LlamaGymError("HUB_NOT_FOUND", `${context.id} lacks the file ${path} that its index names.`);
  });
  const work = async (): Promise<void> => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      try {
        await fetchIntoCache(context, file);
      } catch (error) {
        waiting.length = 0;
        throw error;
      }
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: PARALLEL_FILES }, work));
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
