import { LlamaGymError } from "../../core/errors.js";
import type { EnvOptions } from "../env.js";
import type { MakeOptions } from "../registry/make.js";
import { findSpec, isRemoteEnvId, openEnv } from "../registry/open-env.js";
import { SyncVectorEnv } from "./sync-vector-env.js";
import type { VectorEnv } from "./vector-env.js";
import { WorkerVectorEnv, type WorkerVectorOptions } from "./worker-vector-env.js";

export interface MakeVectorOptions extends WorkerVectorOptions {
  /** "sync" in this process, "worker" in threads. */
  readonly mode?: "sync" | "worker";
  /** Options of `openEnv` for every environment. */
  readonly envOptions?: MakeOptions & EnvOptions;
}

/**
 * Makes several environments of a registered id, or of one that `openEnv` opens (python:CartPole-v1): those have processes
 * or sessions of their own and step side by side in mode "sync".
 * Throws INVALID_ARGUMENT for them in mode "worker", and what `openEnv` throws.
 */
export async function makeVector<Observation = unknown, Action = unknown>(
  id: string,
  { mode = "sync", envOptions = {}, ...options }: MakeVectorOptions,
): Promise<VectorEnv<Observation, Action>> {
  if (mode === "worker") {
    if (!isRemoteEnvId(id))
      return await WorkerVectorEnv.create({ id, module: findSpec(id)?.module, options: envOptions }, options);
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `${id} lives outside this process already; make the vector with mode "sync", which steps such environments side by side.`,
    );
  }
  const factories = Array.from({ length: options.numEnvs }, () => () => openEnv<Observation, Action>(id, envOptions));
  return await SyncVectorEnv.create(factories, options);
}
