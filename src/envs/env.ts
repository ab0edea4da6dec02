import { LlamaGymError, errorMessage, invalidArgument, invalidEnv } from "../core/errors.js";
import { describeUnsavable, MAX_JSON_DEPTH } from "../core/describe-unsavable.js";
import type { RandomState, RandomStream } from "../core/random/random-stream.js";
import type { Info } from "./info.js";
import type { JsonValue } from "../core/json.js";
import type { Policy } from "./policy.js";
import type { MaybePromise } from "../core/maybe-promise.js";
import { createSeededStream } from "./seeded-stream.js";
import { formatValue, type Space } from "./spaces/space.js";
import type { TextInterface } from "./text-interface.js";

/** Options of `Env.reset`. */
export interface ResetOptions {
  /** Seeds the environment's random stream; without it the stream continues. */
  readonly seed?: number | bigint;
  /** Environment-specific reset options. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** Result of `Env.reset`. */
export interface ResetResult<Observation> {
  readonly observation: Observation;
  readonly info: Info;
}

/** Result of `Env.step`. */
export interface StepResult<Observation> {
  readonly observation: Observation;
  readonly reward: number;
  /** Whether the task itself ended (won, lost, fell). */
  readonly terminated: boolean;
  /** Whether something outside the task ended the episode, such as a step limit. */
  readonly truncated: boolean;
  readonly info: Info;
}

/** An image in row-major order from the top, three bytes (red, green, blue) per pixel. */
export interface RgbImage {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
}

/** "ansi" is text for a terminal, "rgb_array" an image. */
export type RenderMode = "ansi" | "rgb_array";
/** Rendered state: text, or RGB pixels. */
export type RenderFrame = string | RgbImage;

/** Metadata of an environment, as in Gymnasium. */
export interface EnvMetadata {
  readonly renderModes: readonly RenderMode[];
  /** Frames per second for playback. */
  readonly renderFps?: number;
}

/** Constructor options of an environment. */
export type EnvOptions = Readonly<Record<string, unknown>>;

/** Creates an environment, such as `(options) => new MyEnv(options)`. */
export type EnvFactory = (options: EnvOptions) => Env;

/**
 * Mean returns to compare a learning curve with, for the options and step limit of a registered id.
 */
export interface KnownReturns {
  /** Mean return of random actions. */
  readonly random: number;
  /** Best known mean return. */
  readonly best: number;
  /**
   * "exact": computed from the rules. "measured": mean over 1000 episodes, seeds 1000 to 1999,
   * where the registered expert gives `best`. "page": taken from the environment's page in
   * docs/environments, without an expert.
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

/** Everything that determines an environment's future, except the actions. */
export interface EnvState {
  readonly random: RandomState;
  readonly state: JsonValue;
}

/**
 * A task for an agent, with Gymnasium's API.
 *
 * `reset` starts an episode and must come first; `step` takes an action until `terminated` or
 * `truncated`. Both may be asynchronous. All randomness comes from `this.random`, which `reset`
 * seeds with `this.reseed(seed)`, so a seed determines the whole episode. An environment that can
 * be saved also implements `saveState` and `loadState`.
 */
export abstract class Env<Observation = unknown, Action = unknown> {
  abstract readonly observationSpace: Space<Observation>;
  abstract readonly actionSpace: Space<Action>;
  readonly metadata: EnvMetadata = { renderModes: [] };
  /** Text interface for language models, where the environment has one. */
  readonly text: TextInterface<Observation, Action> | undefined = undefined;
  /** The spec that `make` created it from. */
  spec: EnvSpec | undefined;
  private stream: RandomStream | undefined;
  private streamSeed: number | bigint | undefined;

  abstract reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>>;
  abstract step(action: Action): MaybePromise<StepResult<Observation>>;

  /** Renders the current state; `mode` is one of `metadata.renderModes`. */
  render(mode: RenderMode): MaybePromise<RenderFrame> {
    throw invalidArgument(
      `${this.constructor.name} cannot render "${mode}": its metadata declares ${JSON.stringify(this.metadata.renderModes)}.`,
    );
  }

  /** Releases resources such as files and processes. May be called twice. */
  close(): MaybePromise<void> {}

  /** The innermost environment. */
  get unwrapped(): Env {
    return this;
  }

  /** Random stream of the environment; seeded from entropy until a seed is passed. */
  get random(): RandomStream {
    if (this.stream === undefined) this.startStream();
    return this.stream as RandomStream;
  }

  /** Last seed of the stream; undefined before its first use. */
  get randomSeed(): number | bigint | undefined {
    return this.streamSeed;
  }

  /** Seeds the random stream; without a seed the stream continues. Call it first in `reset`. */
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

  /** Returns the error for a step or render before the first reset. */
  protected notResetError(): LlamaGymError {
    return new LlamaGymError("ENV_NOT_RESET", `${this.constructor.name}: call reset() before step() and render().`);
  }

  private startStream(seed?: number | bigint): void {
    const seeded = createSeededStream(seed);
    this.stream = seeded.stream;
    this.streamSeed = seeded.seed;
  }

  /**
   * Returns the state as JSON; `setState` on an environment with the same options continues
   * identically.
   */
  getState(): EnvState {
    return { random: this.random.getState(), state: this.saveState() };
  }

  setState(state: EnvState): void {
    this.random.setState(state.random);
    this.loadState(state.state);
  }

  /** Returns the environment's fields as JSON, without the random stream. */
  protected saveState(): JsonValue {
    throw new LlamaGymError(
      "INVALID_STATE",
      `${this.constructor.name} cannot be saved: it has no saveState() and loadState(). Add both to resume runs in it.`,
    );
  }

  /** Restores the value of `saveState`. */
  protected loadState(_state: JsonValue): void {
    throw new LlamaGymError("INVALID_STATE", `${this.constructor.name} cannot be restored: it has no loadState().`);
  }

  toString(): string {
    return this.spec === undefined ? `<${this.constructor.name}>` : `<${this.constructor.name}<${this.spec.id}>>`;
  }
}

/**
 * Characters of a saved state: beyond it, checkpoints of several environments exceed the longest
 * string of JavaScript.
 */
const MAX_STATE_LENGTH = 2 ** 25;
/** Levels of a saved state, which a checkpoint puts into some more. */
export const MAX_STATE_DEPTH = MAX_JSON_DEPTH - 10;

/**
 * Returns the state of an environment, checked to survive JSON.
 * @throws INVALID_STATE when it cannot be saved, ENV_INVALID when its state is not JSON or too
 * large
 */
export function saveEnvState(env: Env): EnvState {
  const state = env.getState();
  let length: number;
  try {
    length = JSON.stringify(state).length;
  } catch (error) {
    const [reason] = errorMessage(error).split("\n");
    const problem = `The state of ${env.unwrapped.toString()} is not JSON, so it cannot be saved: ${reason}`;
    throw invalidEnv(problem, error);
  }
  const unsavable = describeUnsavable(state, MAX_STATE_DEPTH);
  if (unsavable !== undefined)
    throw invalidEnv(`The state of ${env.unwrapped.toString()} cannot be saved: ${unsavable}.`);
  if (length <= MAX_STATE_LENGTH) return state;
  const problem = `has ${length} characters as JSON, at most ${MAX_STATE_LENGTH} are allowed`;
  throw invalidEnv(`The state of ${env.unwrapped.toString()} ${problem}. Save only what step() reads.`);
}

/** Closes an environment. @throws ENV_FAILED when its `close` throws. */
export async function closeEnv(env: Env): Promise<void> {
  try {
    await env.close();
  } catch (error) {
    throw new LlamaGymError("ENV_FAILED", `${env.toString()} threw in close: ${errorMessage(error)}`, { cause: error });
  }
}

/** Returns the result of a factory. @throws ENV_INVALID when it is not an Env. */
export function requireEnv<T extends Env>(value: T, factory: string): T {
  if (value instanceof Env) return value;
  if ((value as unknown) instanceof Promise)
    throw invalidEnv(`${factory} is asynchronous. Load what it needs before, with \`await\` at the top of its module.`);
  throw invalidEnv(
    `${factory} did not return an Env, but ${formatValue(value)}. Return \`new MyEnv(options)\`, where MyEnv extends Env.`,
  );
}
