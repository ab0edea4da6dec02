import type { EnvOptions } from "../env.js";
import { make, type MakeOptions } from "../registry/make.js";
import { SyncVectorEnv } from "./sync-vector-env.js";
import type { VectorEnv } from "./vector-env.js";
import { WorkerVectorEnv, type WorkerVectorOptions } from "./worker-vector-env.js";

export interface MakeVectorOptions extends WorkerVectorOptions {
  /** "sync" in this process, "worker" in threads. */
  readonly mode?: "sync" | "worker";
  /** Options of `make` for every environment. */
  readonly envOptions?: MakeOptions & EnvOptions;
}

/** Makes several environments of a registered id. */
export async function makeVector<Observation = unknown, Action = unknown>(
  id: string,
  { mode = "sync", envOptions = {}, ...options }: MakeVectorOptions,
): Promise<VectorEnv<Observation, Action>> {
  if (mode === "worker") return await WorkerVectorEnv.create({ id, options: envOptions }, options);
  const factories = Array.from({ length: options.numEnvs }, () => () => make<Observation, Action>(id, envOptions));
  return await SyncVectorEnv.create(factories, options);
}
