import type { EnvMetadata, EnvOptions, RenderMode, ResetOptions } from "../env.js";
import type { SpaceDescription } from "../spaces/space-json.js";
import type { SubEnvOptions } from "./sub-env.js";
import type { SubEnvState } from "./vector-env.js";

/** Source of a worker's environments. */
export type EnvReference =
  /** A registered id; `module` is imported first, to register it. */
  | { readonly id: string; readonly module?: string; readonly options?: EnvOptions }
  /**
   * A module's export (the default one by default): an Env class or a function that returns an Env.
   */
  | { readonly id?: undefined; readonly module: string; readonly export?: string; readonly options?: EnvOptions };

/** Arguments of a worker, whose environments are numbered from `firstIndex`. */
export interface EnvWorkerSetup {
  readonly source: EnvReference;
  readonly firstIndex: number;
  readonly count: number;
  readonly options: SubEnvOptions;
  /** Whether their episodes count as ended, because they replace failed environments. */
  readonly initiallyEnded: boolean;
}

/** A call to a worker; lists have one entry per environment. */
export type EnvWorkerCall =
  | { readonly method: "describe" }
  | { readonly method: "reset"; readonly options: readonly (ResetOptions | undefined)[] }
  | { readonly method: "step"; readonly actions: readonly unknown[] }
  | { readonly method: "render"; readonly mode: RenderMode }
  | { readonly method: "getState" }
  | { readonly method: "setState"; readonly states: readonly SubEnvState[] }
  | { readonly method: "close" };

export interface EnvWorkerRequest {
  readonly id: number;
  readonly call: EnvWorkerCall;
}

export type EnvWorkerResponse =
  | { readonly id: number; readonly values: readonly unknown[] }
  | { readonly id: number; readonly error: { readonly code: string | undefined; readonly message: string } };

/** Description of a worker's environment for the main thread. */
export interface EnvDescription {
  readonly name: string;
  readonly observationSpace: SpaceDescription;
  readonly actionSpace: SpaceDescription;
  readonly metadata: EnvMetadata;
}
