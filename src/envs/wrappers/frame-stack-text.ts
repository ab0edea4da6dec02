import { LlamaGymError } from "../../core/errors.js";
import { integerFrom, requireOptions } from "../../core/settings.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import type { Env, ResetOptions, ResetResult, StepResult } from "../env.js";
import type { Info } from "../info.js";
import { getChoices, type TextInterface } from "../text-interface.js";
import { Wrapper } from "../wrapper.js";

/** Key of the info that has the texts of earlier observations, oldest first. */
const EARLIER_OBSERVATIONS = "earlierObservations";

/**
 * Shows a language model the last observations of an episode, as `FrameStackObservation` does for
 * arrays: the text of an observation begins with those before it. Observations, actions and rewards
 * are the environment's.
 */
export class FrameStackText<Observation = unknown, Action = unknown> extends Wrapper<Observation, Action> {
  override readonly text: TextInterface<Observation, Action>;
  private readonly innerText: TextInterface<Observation, Action>;
  private readonly stackSize: number;

  /**
   * @throws INVALID_ARGUMENT for a stack of less than two observations, ENV_INVALID for an
   * environment without a text interface.
   */
  constructor(env: Env<Observation, Action>, options: { readonly stackSize: number }) {
    super(env);
    requireOptions("FrameStackText", options, { stackSize: integerFrom(2) });
    const { stackSize } = options;
    if (env.text === undefined)
      throw new LlamaGymError(
        "ENV_INVALID",
        `${env.toString()} has no text interface, so the texts of its observations cannot be stacked. Give it a \`text\`.`,
      );
    this.stackSize = stackSize;
    this.innerText = env.text;
    this.text = new StackedText(env.text, stackSize);
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    return andThen(this.env.reset(options), (result) => this.stack(result, []));
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return andThen(this.env.step(action), (result) => this.stack(result, this.frames));
  }

  private stack<Result extends ResetResult<Observation>>(result: Result, frames: readonly string[]): Result {
    const earlier = frames.slice(1 - this.stackSize);
    this.wrapperState = [...earlier, this.innerText.formatObservation(result.observation, result.info)];
    return { ...result, info: { ...result.info, [EARLIER_OBSERVATIONS]: earlier } };
  }

  /** The texts of the last observations, oldest first. */
  private get frames(): readonly string[] {
    return this.wrapperState as readonly string[];
  }
}

/** The text interface of stacked observations. */
class StackedText<Observation, Action> implements TextInterface<Observation, Action> {
  readonly choices;
  readonly jsonSchema;

  constructor(
    private readonly inner: TextInterface<Observation, Action>,
    private readonly stackSize: number,
  ) {
    const { choices, jsonSchema } = inner;
    this.choices =
      typeof choices === "function"
        ? (observation: Observation, info: Info) => getChoices(inner, observation, info)!
        : choices;
    this.jsonSchema = jsonSchema;
  }

  get systemPrompt(): string {
    return `${this.inner.systemPrompt}\nYou are shown up to ${this.stackSize} observations, oldest first.`;
  }

  formatObservation(observation: Observation, info: Info): string {
    const text = this.inner.formatObservation(observation, info);
    const { [EARLIER_OBSERVATIONS]: earlier } = info as { readonly [EARLIER_OBSERVATIONS]?: readonly string[] };
    if (earlier === undefined || earlier.length === 0) return text;
    const ages = earlier.map((_, i) => earlier.length - i);
    return [...earlier.map((frame, i) => `${formatAge(ages[i])}: ${frame}`), `Now: ${text}`].join("\n");
  }

  parseAction(reply: string, observation?: Observation, info?: Info): Action | undefined {
    return this.inner.parseAction(reply, observation, info);
  }

  formatAction(action: Action): string {
    return this.inner.formatAction(action);
  }
}

const formatAge = (steps: number) => `${steps} ${steps === 1 ? "step" : "steps"} ago`;
