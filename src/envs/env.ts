import { LlamaGymError } from "../core/errors.js";
import type { RandomState, RandomStream } from "../core/random/random-stream.js";
import type { Info } from "./info.js";
import type { JsonValue } from "../core/json.js";
import type { Policy } from "./policy.js";
import type { MaybePromise } from "../core/maybe-promise.js";
import { createSeededStream } from "./seeded-stream.js";
import { formatValue, type Space } from "./spaces/space.js";
import type { TextInterface } from "./text-interface.js";

export interface ResetOptions {
  /** Starts the environment's random stream anew; without it the stream runs on. */
  readonly seed?: number | bigint;
  /** What the environment's page lists as reset options. */
  readonly options?: Readonly<Record<string, unknown>>;
}

export interface ResetResult<Observation> {
  readonly observation: Observation;
  readonly info: Info;
}

export interface StepResult<Observation> {
  readonly observation: Observation;
  readonly reward: number;
  /** The task itself came to an end (won, lost, fell). */
  readonly terminated: boolean;
  /** Something outside the task ended the episode, such as a step limit. */
  readonly truncated: boolean;
  readonly info: Info;
}

/** Pixels, row by row from the top, three bytes (red, green, blue) each. */
export interface RgbImage {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
}

/** "ansi" is text for a terminal, "rgb_array" an image. */
export type RenderMode = "ansi" | "rgb_array";
export type RenderFrame = string | RgbImage;

export interface EnvMetadata {
  readonly renderModes: readonly RenderMode[];
  /** Frames a second at which a person should watch. */
  readonly renderFps?: number;
}

/** Options that an environment's constructor takes, by name. */
export type EnvOptions = Readonly<Record<string, unknown>>;

/** Makes an environment; a class is given as `(options) => new MyEnv(options)`. */
export type EnvFactory = (options: EnvOptions) => Env;

/** Mean returns to compare a learning curve with, for the options and step limit of a registered id. */
export interface KnownReturns {
  /** Mean return of random actions. */
  readonly random: number;
  /** Best known mean return. */
  readonly best: number;
  /**
   * "exact": computed from the rules. "measured": mean over 1000 episodes, seeds 1000 to 1999, where the registered
   * expert gives `best`. "page": taken from the environment's page in docs/environments, without an expert.
   */
  readonly basis: "exact" | "measured" | "page";
}

/** A registered environment. */
export interface EnvSpec {
  /** namespace/Name-v0; namespace and version are optional. */
  readonly id: string;
  readonly entryPoint: EnvFactory;
  /** Default options of the entry point. */
  readonly options: EnvOptions;
  /** Number of steps after which an episode is truncated. */
  readonly maxEpisodeSteps?: number;
  /** Mean return at which the task counts as solved. */
  readonly rewardThreshold?: number;
  /** Whether episodes may differ for the same seed. */
  readonly nondeterministic: boolean;
  /** Whether a step before the first reset is an error. */
  readonly orderEnforce: boolean;
  /** Whether to skip the check of the first reset and step. */
  readonly disableEnvChecker: boolean;
  /** The task in a few words. */
  readonly summary?: string;
  readonly knownReturns?: KnownReturns;
  /** Returns a strong policy for an environment made from this spec. */
  readonly expert?: (env: Env) => Policy;
  /** URL of the module that registers the id when imported; worker threads import it first. */
  readonly module?: string;
}

/** Everything that an environment's future depends on besides the actions to come. */
export interface EnvState {
  readonly random: RandomState;
  readonly state: JsonValue;
}

/**
 * A task for an agent, with Gymnasium's meaning of every name.
 *
 * `reset` starts an episode and must come first; `step` takes an action until `terminated` or `truncated`. Both may be
 * asynchronous. All randomness comes from `this.random`, which `reset` starts anew by `this.reseed(seed)`; then a seed
 * tells the whole episode. An environment that can be saved also has `saveState` and `loadState`.
 */
export abstract class Env<Observation = unknown, Action = unknown> {
  abstract readonly observationSpace: Space<Observation>;
  abstract readonly actionSpace: Space<Action>;
  readonly metadata: EnvMetadata = { renderModes: [] };
  /** How a language model reads observations and writes actions; undefined when there is no such form. */
  readonly text: TextInterface<Observation, Action> | undefined = undefined;
  /** How it was made, when it comes from `make`. */
  spec: EnvSpec | undefined;
  private stream: RandomStream | undefined;
  private streamSeed: number | bigint | undefined;

  abstract reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>>;
  abstract step(action: Action): MaybePromise<StepResult<Observation>>;

  /** The present state as a picture; `mode` is one of `metadata.renderModes`. */
  render(mode: RenderMode): MaybePromise<RenderFrame> {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `${this.constructor.name} cannot render "${mode}": its metadata declares ${JSON.stringify(this.metadata.renderModes)}.`,
    );
  }

  /** Gives back what the environment holds (files, processes). It may be called twice. */
  close(): MaybePromise<void> {}

  /** The environment inside all wrappers. */
  get unwrapped(): Env {
    return this;
  }

  /** The environment's own random stream; started from entropy when no seed was ever given. */
  get random(): RandomStream {
    if (this.stream === undefined) this.startStream();
    return this.stream as RandomStream;
  }

  /** The seed that the stream was last started with; undefined before the first use. */
  get randomSeed(): number | bigint | undefined {
    return this.streamSeed;
  }

  /** Starts the random stream from `seed`; leaves it running when there is none. Every `reset` begins with it. */
  protected reseed(seed: number | bigint | undefined): void {
    if (seed !== undefined) this.startStream(seed);
  }

  /** @throws ENV_ACTION_INVALID when the action is not in the action space. */
  protected checkAction(action: unknown): asserts action is Action {
    if (this.actionSpace.contains(action)) return;
    throw new LlamaGymError(
      "ENV_ACTION_INVALID",
      `${formatValue(action)} (${typeof action}) invalid: ${this.constructor.name} takes an action of ${this.actionSpace.toString()}.`,
    );
  }

  /** The error for a step or a picture before the first reset. */
  protected notResetError(): LlamaGymError {
    return new LlamaGymError("ENV_NOT_RESET", `${this.constructor.name}: call reset() before step() and render().`);
  }

  private startStream(seed?: number | bigint): void {
    const seeded = createSeededStream(seed);
    this.stream = seeded.stream;
    this.streamSeed = seeded.seed;
  }

  /** The state as JSON; `setState` on an environment made the same way continues identically. */
  getState(): EnvState {
    return { random: this.random.getState(), state: this.saveState() };
  }

  setState(state: EnvState): void {
    this.random.setState(state.random);
    this.loadState(state.state);
  }

  /** The environment's own fields as JSON, without the random stream. */
  protected saveState(): JsonValue {
    throw new LlamaGymError(
      "INVALID_STATE",
      `${this.constructor.name} cannot be saved: it has no saveState() and loadState(). Add both to resume runs in it.`,
    );
  }

  /** Takes back what `saveState` gave. */
  protected loadState(_state: JsonValue): void {
    throw new LlamaGymError("INVALID_STATE", `${this.constructor.name} cannot be restored: it has no loadState().`);
  }

  toString(): string {
    return this.spec === undefined ? `<${this.constructor.name}>` : `<${this.constructor.name}<${this.spec.id}>>`;
  }
}
