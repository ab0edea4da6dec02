import type { Env } from "../../env.js";
import type { Space } from "../../spaces/space.js";
import type { TextInterface } from "../../text-interface.js";
import { ActionWrapper } from "../../wrapper.js";

/** Options of `TransformAction`. */
export interface TransformActionOptions<Observation, Action, InnerAction> {
  readonly action: (action: Action) => InnerAction;
  /** Space of the outer actions. Default: the environment's. */
  readonly actionSpace?: Space<Action>;
  /** Text interface. Default: none. */
  readonly text?: TextInterface<Observation, Action>;
}

/** Transforms actions by a function. */
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
