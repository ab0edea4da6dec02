import type { RandomStream } from "../tensor/random.js";
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
import type { JsonValue } from "./json.js";
import type { MaybePromise } from "./maybe-promise.js";
import type { Space } from "./spaces/space.js";
import type { TextForm } from "./text-form.js";

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
  override readonly text: TextForm<Observation, Action> | undefined;

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
