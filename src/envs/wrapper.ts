import { invalidArgument } from "../core/errors.js";
import { describeValue } from "../core/format.js";
import type { RandomStream } from "../core/random/random-stream.js";
import {
  Env,
  type EnvMetadata,
  type EnvState,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type StepResult,
} from "./env.js";
import type { JsonValue } from "../core/json.js";
import { andThen, type MaybePromise } from "../core/maybe-promise.js";
import type { Space } from "./spaces/space.js";
import type { TextInterface } from "./text-interface.js";

/**
 * An environment that passes everything through to another one; subclasses override what they
 * change, as with Gymnasium's Wrapper. One that changes observations or actions sets their space
 * and `text`; Observation and Action are then the outer types, InnerObservation and InnerAction
 * those of the wrapped environment.
 */
export class Wrapper<
  Observation = unknown,
  Action = unknown,
  InnerObservation = Observation,
  InnerAction = Action,
> extends Env<Observation, Action> {
  override readonly metadata: EnvMetadata;
  override readonly observationSpace: Space<Observation>;
  override readonly actionSpace: Space<Action>;
  override readonly text: TextInterface<Observation, Action> | undefined;
  /**
   * The wrapper's own state, which is saved; a wrapper whose state is not JSON overrides saveState
   * and loadState.
   */
  protected wrapperState: JsonValue = null;

  constructor(readonly env: Env<InnerObservation, InnerAction>) {
    super();
    if (typeof (env as Partial<Env> | null | undefined)?.step !== "function")
      throw invalidArgument(
        `${this.constructor.name} wraps an environment, such as make("CartPole-v1"), got ${describeValue(env)}.`,
      );
    const inner = env as unknown as Env<Observation, Action>;
    this.metadata = env.metadata;
    this.spec = env.spec;
    this.observationSpace = inner.observationSpace;
    this.actionSpace = inner.actionSpace;
    this.text = inner.text;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    return (this.env as unknown as Env<Observation>).reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return (this.env as unknown as Env<Observation, Action>).step(action);
  }

  override get unwrapped(): Env {
    return this.env.unwrapped;
  }

  override get random(): RandomStream {
    return this.env.random;
  }

  override get randomSeed(): number | bigint | undefined {
    return this.env.randomSeed;
  }

  override render(mode: RenderMode): MaybePromise<RenderFrame> {
    return this.env.render(mode);
  }

  override close(): MaybePromise<void> {
    return this.env.close();
  }

  override getState(): EnvState {
    const inner = this.env.getState();
    return { random: inner.random, state: { wrapper: this.saveState(), env: inner.state } };
  }

  override setState(state: EnvState): void {
    const { wrapper, env } = state.state as { wrapper: JsonValue; env: JsonValue };
    this.env.setState({ random: state.random, state: env });
    this.loadState(wrapper);
  }

  protected override saveState(): JsonValue {
    return structuredClone(this.wrapperState);
  }

  protected override loadState(state: JsonValue): void {
    this.wrapperState = structuredClone(state);
  }

  override toString(): string {
    return `<${this.constructor.name}${this.env.toString()}>`;
  }
}

/**
 * A wrapper that transforms observations with `observation`, into the space passed to its
 * constructor; without one, into the environment's.
 */
export abstract class ObservationWrapper<
  Observation = unknown,
  Action = unknown,
  InnerObservation = Observation,
> extends Wrapper<Observation, Action, InnerObservation, Action> {
  override readonly observationSpace: Space<Observation>;
  /** Undefined: the text of the wrapped environment formats its own observations. */
  override readonly text: TextInterface<Observation, Action> | undefined = undefined;

  constructor(env: Env<InnerObservation, Action>, observationSpace?: Space<Observation>) {
    super(env);
    this.observationSpace = observationSpace ?? (env.observationSpace as unknown as Space<Observation>);
  }

  /** Transforms an observation of the wrapped environment. */
  abstract observation(observation: InnerObservation): Observation;

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    return andThen(this.env.reset(options), (result) => ({
      ...result,
      observation: this.observation(result.observation),
    }));
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return andThen(this.env.step(action), (result) => ({
      ...result,
      observation: this.observation(result.observation),
    }));
  }
}

/**
 * A wrapper that transforms actions with `action` before they reach the environment. Without a
 * space, its own is the environment's.
 */
export abstract class ActionWrapper<Observation = unknown, Action = unknown, InnerAction = Action> extends Wrapper<
  Observation,
  Action,
  Observation,
  InnerAction
> {
  override readonly actionSpace: Space<Action>;
  /** Undefined: the text of the wrapped environment parses its own actions. */
  override readonly text: TextInterface<Observation, Action> | undefined = undefined;

  constructor(env: Env<Observation, InnerAction>, actionSpace?: Space<Action>) {
    super(env);
    this.actionSpace = actionSpace ?? (env.actionSpace as unknown as Space<Action>);
  }

  /** Transforms an action for the wrapped environment. */
  abstract action(action: Action): InnerAction;

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return this.env.step(this.action(action));
  }
}

/** A wrapper that transforms rewards with `reward`. */
export abstract class RewardWrapper<Observation = unknown, Action = unknown> extends Wrapper<Observation, Action> {
  /** Transforms a reward of the wrapped environment. */
  abstract reward(reward: number): number;

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return andThen(this.env.step(action), (result) => ({ ...result, reward: this.reward(result.reward) }));
  }
}
