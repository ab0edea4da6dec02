import type { Env } from "../../env.js";
import type { Space } from "../../spaces/space.js";
import type { TextInterface } from "../../text-interface.js";
import { ActionWrapper } from "../../wrapper.js";

export interface TransformActionOptions<Observation, Action, InnerAction> {
  readonly action: (action: Action) => InnerAction;
  /** Where the actions from outside lie; the environment's own space when not said. */
  readonly actionSpace?: Space<Action>;
  /** How they read as text; not at all when not said. */
  readonly text?: TextInterface<Observation, Action>;
}

/** Changes actions by a function before the environment takes them. */
export class TransformAction<Observation, Action, InnerAction = Action> extends ActionWrapper<
  Observation,
  Action,
  InnerAction
> {
  override readonly text: TextInterface<Observation, Action> | undefined;
  private readonly transform: (action: Action) => InnerAction;

  constructor(env: Env<Observation, InnerAction>, options: TransformActionOptions<Observation, Action, InnerAction>) {
    super(env, options.actionSpace ?? (env.actionSpace as Space as Space<Action>));
    this.transform = options.action;
    this.text = options.text;
  }

  override action(action: Action): InnerAction {
    return this.transform(action);
  }
}
