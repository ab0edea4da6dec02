import type { OptionNames } from "../../../core/settings.js";
import { invalidArgument, LlamaGymError } from "../../../core/errors.js";
import { describeValue } from "../../../core/format.js";
import { readWeightMap } from "../safetensors/index.js";
import { ModelCache } from "./model-cache.js";
import { fetchIntoCache, type DownloadContext, type DownloadProgress } from "./fetch-into-cache.js";
import { findLocalModel } from "./find-local-model.js";
import type { ModelLocation } from "./model-location.js";
import { parseModelReference } from "./model-reference.js";
import { resolveCommit, listRepositoryFiles, isCommitHash, type RemoteFile } from "./repository.js";
import { selectFiles, type FileSelection } from "./select-files.js";
import { resolveHubConfig, type HubOptions, type HubConfig } from "./hub-config.js";

/** Options for finding a model. */
export interface ResolveOptions extends HubOptions {
  /** Branch, tag or commit on the hub. Default "main". */
  readonly revision?: string;
  /** A GGUF file of the repository or folder: its name or quantization (Q4_K_M). */
  readonly file?: string;
  /** Receives each file's download progress about ten times a second. */
  readonly onProgress?: (progress: DownloadProgress) => void;
}

/** The names of `ResolveOptions`. */
export const resolveOptionNames: OptionNames<ResolveOptions> = {
  revision: String,
  file: String,
  onProgress: Function,
  cacheDir: String,
  token: true,
};

const MAX_PARALLEL_DOWNLOADS = 4;

/**
 * Resolves a model: a local folder or GGUF file, or a hub id (`owner/name`, `owner/name:file.gguf`,
 * `owner/name#Q4_K_M`), whose missing files are downloaded into the Hugging Face cache. A
 * completely cached model needs no network. @throws FILE_NOT_FOUND, INVALID_ARGUMENT,
 * FORMAT_UNSUPPORTED, HUB_NOT_FOUND, HUB_UNAUTHORIZED, HUB_UNREACHABLE, HUB_OFFLINE,
 * FILE_WRITE_FAILED, FILE_CORRUPT.
 */
export async function resolveModel(idOrPath: string, options: ResolveOptions = {}): Promise<ModelLocation> {
  if (typeof idOrPath !== "string" || idOrPath === "")
    throw invalidArgument(
      `A model is a folder, a GGUF file, a hub id such as HuggingFaceTB/SmolLM2-135M-Instruct, or "embedded", got ${describeValue(idOrPath)}.`,
    );
  const local = await findLocalModel(idOrPath, options.file);
  return local ?? resolveFromHub(idOrPath, options, await resolveHubConfig(options));
}

/** Resolves a hub id with given settings; see `resolveModel`. */
export async function resolveFromHub(
  idOrPath: string,
  options: ResolveOptions,
  config: HubConfig,
): Promise<ModelLocation> {
  const reference = parseModelReference(idOrPath);
  if (reference === undefined)
    throw new LlamaGymError(
      "FILE_NOT_FOUND",
      `${idOrPath} neither exists nor is a hub id (owner/name). Check the path.`,
    );
  const { id } = reference;
  const { revision = "main", file = reference.file, onProgress } = options;
  const cache = new ModelCache(config.cacheDir, id);
  const request: ResolveRequest = { id, revision, file, cache, config, onProgress };
  if (config.offline || isCommitHash(revision)) {
    const cached = await findInCache(request);
    if (cached !== undefined) return cached;
    if (config.offline)
      throw new LlamaGymError(
        "HUB_OFFLINE",
        `${idOrPath} is neither a path nor completely cached (${cache.folder}), and HF_HUB_OFFLINE disables downloads. ` +
          "Unset HF_HUB_OFFLINE, or use the path of a local folder.",
      );
  }
  try {
    return await downloadFromHub(request);
  } catch (error) {
    const isUnreachable = error instanceof LlamaGymError && error.code === "HUB_UNREACHABLE";
    const cached = isUnreachable ? await findInCache(request) : undefined;
    if (cached === undefined) throw error;
    return cached;
  }
}

interface ResolveRequest {
  readonly id: string;
  readonly revision: string;
  readonly file: string | undefined;
  readonly cache: ModelCache;
  readonly config: HubConfig;
  readonly onProgress: ResolveOptions["onProgress"];
}

function toLocation({ id, cache }: ResolveRequest, commit: string, { kind, files }: FileSelection): ModelLocation {
  const path = cache.snapshotPath(commit, kind === "gguf" ? files[0] : "");
  return { kind, path, id, revision: commit };
}

/** Returns the cached model if all its files are present. */
async function findInCache(request: ResolveRequest): Promise<ModelLocation | undefined> {
  const { cache, id, file, revision } = request;
  const commit = await cache.readCommit(revision);
  if (commit === undefined) return undefined;
  const paths = await cache.listPaths(commit);
  try {
    const selection = selectFiles(id, paths, file);
    const needed = [...selection.files, ...(await listShards(request, commit, selection)), ...listGgufParts(selection)];
    return needed.every((path) => paths.includes(path)) ? toLocation(request, commit, selection) : undefined;
  } catch {
    return undefined;
  }
}

/** Lists the parts of a split GGUF file by the name of the first. */
function listGgufParts({ kind, files }: FileSelection): string[] {
  const split = kind === "gguf" ? /^(.*)-\d{5}-of-(\d{5})\.gguf$/u.exec(files[0]) : null;
  if (split === null) return [];
  const [, stem, count] = split;
  return Array.from({ length: Number(count) }, (_, i) => `${stem}-${String(i + 1).padStart(5, "0")}-of-${count}.gguf`);
}

async function listShards({ cache }: ResolveRequest, commit: string, { index }: FileSelection): Promise<string[]> {
  if (index === undefined) return [];
  return [...new Set((await readWeightMap(cache.snapshotPath(commit, index))).values())];
}

async function downloadFromHub(request: ResolveRequest): Promise<ModelLocation> {
  const { id, revision, file, cache, config, onProgress } = request;
  const commit = await resolveCommit(config, id, revision);
  const remote = await listRepositoryFiles(config, id, commit);
  const paths = remote.map(({ path }) => path);
  const selection = selectFiles(id, paths, file);
  const context: DownloadContext = { config, cache, id, commit, onProgress };
  const byPath = new Map(remote.map((entry) => [entry.path, entry]));
  await fetchAll(context, byPath, selection.files);
  await fetchAll(context, byPath, await listShards(request, commit, selection));
  await cache.storeCommit(revision, commit);
  return toLocation(request, commit, selection);
}

/** Downloads files in parallel; the first failure cancels those not started. */
async function fetchAll(
  context: DownloadContext,
  remote: ReadonlyMap<string, RemoteFile>,
  paths: readonly string[],
): Promise<void> {
  const queue = paths.map((path) => {
    const file = remote.get(path);
    if (file !== undefined) return file;
    throw new LlamaGymError("HUB_NOT_FOUND", `${context.id} lacks the file ${path} that its index names.`);
  });
  const worker = async (): Promise<void> => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      try {
        await fetchIntoCache(context, file);
      } catch (error) {
        queue.length = 0;
        throw error;
      }
    }
  };
  const results = await Promise.allSettled(Array.from({ length: MAX_PARALLEL_DOWNLOADS }, worker));
  const failed = results.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
