import type { Hono } from "hono";
import { invalidArgument } from "../../core/errors.js";
import type { LanguageModel } from "../../generation/index.js";
import { startHttpServer, type HttpServerOptions, type RunningServer } from "../server/http-server.js";
import type { ServerMetrics } from "../server/server-metrics.js";
import { CheckpointStore } from "./checkpoint-store.js";
import { mountTinkerRoutes } from "./tinker-routes.js";
import { getSnapshotFolder, TinkerService, type TinkerServiceOptions } from "./tinker-service.js";

/** Options of `startTinkerServer`. */
export interface TinkerServerOptions
  extends HttpServerOptions, Pick<TinkerServiceOptions, "modelName" | "aliases" | "sessionTimeoutMs" | "onError"> {
  /** Folder of training runs and their checkpoints. */
  readonly folder: string;
  /** Adds further routes. */
  readonly addRoutes?: (app: Hono, metrics: ServerMetrics) => void;
}

/**
 * Bodies of training passes: a chunk has about 5 MB, and a long sequence with many targets of each
 * token more.
 */
const MAX_BODY_BYTES = 64 * 2 ** 20;
/** The SDK refuses other keys before it sends a request. */
const KEY_PREFIX = "tml-";

/**
 * Serves a model over the Tinker API: clients train adapters of it and sample from them.
 * @throws INVALID_ARGUMENT for a key that the SDK cannot send and as `startHttpServer`,
 * FOLDER_IN_USE, FILE_WRITE_FAILED.
 */
export async function startTinkerServer(model: LanguageModel, options: TinkerServerOptions): Promise<RunningServer> {
  const { folder, apiKey, modelName, aliases, sessionTimeoutMs, onError, addRoutes, ...address } = options;
  if (apiKey?.startsWith(KEY_PREFIX) === false)
    throw invalidArgument(`The Tinker SDK sends only keys that begin with ${KEY_PREFIX}. Choose such a key.`);
  const store = await CheckpointStore.open(folder);
  let metrics: ServerMetrics | undefined;
  const service = new TinkerService(model, {
    modelName,
    aliases,
    store,
    snapshotFolder: getSnapshotFolder(folder),
    sessionTimeoutMs,
    onError,
    onWork: (kind) => metrics?.countWork(kind),
  });
  try {
    await service.snapshots.clear();
    const server = await startHttpServer({ ...address, apiKey, maxBodyBytes: MAX_BODY_BYTES }, (app, metrics) => {
      mountTinkerRoutes(app, service, onError);
      addRoutes?.(app, metrics);
    });
    ({ metrics } = server);
    return {
      ...server,
      close: async (graceMs) => {
        await server.close(graceMs);
        await service.close();
        await store.close();
      },
    };
  } catch (error) {
    await service.close();
    await store.close();
    throw error;
  }
}
