import type { RandomStream } from "../../src/index.js";

/** What a mutant was made of, such as tokens, for the totals of a run. */
export type Totals = Readonly<Record<string, number>>;

/**
 * Builds one mutant from the stream, passes it to the library, and resolves if the library accepts
 * it.
 */
export type Attempt = (random: RandomStream) => Promise<Totals | void>;

/** Mutants of one kind of untrusted input. */
export interface Driver {
  /** Milliseconds of processor time after which a mutant counts as hung. */
  readonly timeLimitMs: number;
  /** Relative number of mutants in a run. */
  readonly share: number;
  /** Prepares what the mutants of a process share. `scratch` is an empty folder. */
  start(scratch: string): Promise<Attempt>;
}

/**
 * What happened to a mutant. "raw" is an error without a code, or one whose message reveals a
 * programming error.
 */
export type Outcome = "accepted" | "refused" | "raw" | "hung" | "crashed" | "memory";

/** Message of a worker process: the mutant it tries next, or what happened to it. */
export type WorkerMessage =
  | { readonly type: "ready" }
  | { readonly type: "trying"; readonly mutant: number }
  | {
      readonly type: "tried";
      readonly mutant: number;
      readonly outcome: Outcome;
      readonly detail: string;
      readonly totals?: Totals;
    };

/** Request to a worker process. */
export interface BatchRequest {
  readonly seed: number;
  readonly first: number;
  readonly count: number;
}

/** Resident memory above which a process counts as out of memory. */
export const MAX_MEMORY_BYTES = 2 * 2 ** 30;
