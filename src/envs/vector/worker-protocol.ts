import type { EnvMetadata, EnvOptions, RenderMode, ResetOptions } from "../env.js";
import type { SpaceDescription } from "../spaces/space-json.js";
import type { SubEnvOptions } from "./sub-env.js";
import type { SubEnvState } from "./vector-env.js";

/** Where a worker gets its environment from. */
export type EnvSource =
  /** A registered id; `module`, when given, is imported first and registers it. */
  | { readonly id: string; readonly module?: string; readonly options?: EnvOptions }
  /** A module's export (its default one when not said): an Env class or a function that gives an Env. */
  | { readonly id?: undefined; readonly module: string; readonly export?: string; readonly options?: EnvOptions };

/** What a worker is started with: its environments are numbered from `firstIndex`. */
export interface EnvWorkerSetup {
  readonly source: EnvSource;
  readonly firstIndex: number;
  readonly count: number;
  readonly options: SubEnvOptions;
  /** Whether they count as ended, because they stand for some that died. */
  readonly initiallyEnded: boolean;
}

/** What is asked of a worker; lists have one entry for each of its environments. */
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

/** What the main thread needs to know of an environment that lives elsewhere. */
export interface EnvDescription {
  readonly name: string;
  readonly observationSpace: SpaceDescription;
  readonly actionSpace: SpaceDescription;
  readonly metadata: EnvMetadata;
}
