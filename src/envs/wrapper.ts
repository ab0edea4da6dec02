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
 * An environment around another one. It passes everything on; a subclass changes what it is about. Observation and
 * Action are seen from outside, InnerObservation and InnerAction by the environment inside.
 */
export abstract class Wrapper<
  Observation = unknown,
  Action = unknown,
  InnerObservation = Observation,
  InnerAction = Action,
> extends Env<Observation, Action> {
  override readonly metadata: EnvMetadata;

  constructor(readonly env: Env<InnerObservation, InnerAction>) {
    super();
    this.metadata = env.metadata;
    this.spec = env.spec;
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
    return null;
  }

  protected override loadState(_state: JsonValue): void {}

  override toString(): string {
    return `<${this.constructor.name}${this.env.toString()}>`;
  }
}

/** A wrapper that leaves observations and actions as they are; its subclasses watch or change rewards and endings. */
export abstract class PassThroughWrapper<Observation = unknown, Action = unknown> extends Wrapper<Observation, Action> {
  override readonly observationSpace: Space<Observation>;
  override readonly actionSpace: Space<Action>;
  override readonly text: TextInterface<Observation, Action> | undefined;

  constructor(env: Env<Observation, Action>) {
    super(env);
    this.observationSpace = env.observationSpace;
    this.actionSpace = env.actionSpace;
    this.text = env.text;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    return this.env.reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return this.env.step(action);
  }
}

/** A wrapper that changes observations by `observation`; what it gives lies in the space it is constructed with. */
export abstract class ObservationWrapper<
  Observation = unknown,
  Action = unknown,
  InnerObservation = Observation,
> extends Wrapper<Observation, Action, InnerObservation, Action> {
  override readonly observationSpace: Space<Observation>;
  override readonly actionSpace: Space<Action>;

  constructor(env: Env<InnerObservation, Action>, observationSpace: Space<Observation>) {
    super(env);
    this.observationSpace = observationSpace;
    this.actionSpace = env.actionSpace;
  }

  /** The observation as seen from outside. */
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

/** A wrapper that changes actions by `action` before the environment takes them. */
export abstract class ActionWrapper<Observation = unknown, Action = unknown, InnerAction = Action> extends Wrapper<
  Observation,
  Action,
  Observation,
  InnerAction
> {
  override readonly observationSpace: Space<Observation>;
  override readonly actionSpace: Space<Action>;

  constructor(env: Env<Observation, InnerAction>, actionSpace: Space<Action>) {
    super(env);
    this.observationSpace = env.observationSpace;
    this.actionSpace = actionSpace;
  }

  /** The action as the environment takes it. */
  abstract action(action: Action): InnerAction;

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    return this.env.reset(options);
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return this.env.step(this.action(action));
  }
}

/** A wrapper that changes rewards by `reward`. */
export abstract class RewardWrapper<Observation = unknown, Action = unknown> extends PassThroughWrapper<
  Observation,
  Action
> {
  /** The reward as seen from outside. */
  abstract reward(reward: number): number;

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return andThen(this.env.step(action), (result) => ({ ...result, reward: this.reward(result.reward) }));
  }
}
