import { checkOptions, oneOf, type OptionNames } from "../../core/settings.js";
import { invalidArgument } from "../../core/errors.js";
import type { EnvOptions } from "../env.js";
import type { MakeOptions } from "../registry/make.js";
import { findSpec, isRemoteEnvId, openEnv } from "../registry/open-env.js";
import { SyncVectorEnv } from "./sync-vector-env.js";
import type { VectorEnv } from "./vector-env.js";
import { WorkerVectorEnv, workerVectorOptionNames, type WorkerVectorOptions } from "./worker-vector-env.js";

/** Options of `makeVector`. */
export interface MakeVectorOptions extends WorkerVectorOptions {
  /** "sync": in this process. "worker": in threads. */
  readonly mode?: "sync" | "worker";
  /** Options of `openEnv` for each environment. */
  readonly envOptions?: MakeOptions & EnvOptions;
}

const makeVectorOptionNames: OptionNames<MakeVectorOptions> = {
  mode: oneOf("sync", "worker"),
  envOptions: Object,
  ...workerVectorOptionNames,
};

/**
 * Creates several environments of an id that `openEnv` accepts. Remote ones (python:CartPole-v1)
 * have separate processes or sessions and step concurrently in mode "sync".
 * @throws INVALID_ARGUMENT for remote ones in mode "worker"
 */
export async function makeVector<Observation = unknown, Action = unknown>(
  id: string,
  makeOptions: MakeVectorOptions,
): Promise<VectorEnv<Observation, Action>> {
  checkOptions("makeVector", makeOptions, makeVectorOptionNames);
  const { mode = "sync", envOptions = {}, ...options } = makeOptions;
  if (mode === "worker") {
    if (!isRemoteEnvId(id))
      return await WorkerVectorEnv.create({ id, module: findSpec(id)?.module, options: envOptions }, options);
    throw invalidArgument(
      `${id} already runs outside this process. Use mode "sync", which steps such environments concurrently.`,
    );
  }
  const { numEnvs, numWorkers, timeout, ...vectorOptions } = options;
  if (numWorkers !== undefined || timeout !== undefined)
    throw invalidArgument(
      `\`${timeout === undefined ? "numWorkers" : "timeout"}\` of makeVector needs the mode "worker": in mode "sync" all environments step in this process.`,
    );
  const factories = Array.from({ length: numEnvs }, () => () => openEnv<Observation, Action>(id, envOptions));
  return await SyncVectorEnv.create(factories, vectorOptions);
}
