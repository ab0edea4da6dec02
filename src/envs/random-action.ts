import type { Env } from "./env.js";
import type { Info } from "./info.js";
import { getChoices } from "./text-interface.js";
import type { RandomStream } from "../core/random/random-stream.js";

/**
 * Creates an `invalidAction.fallback` that chooses at random: one of the choices that the
 * environment lists, otherwise an action of its action space.
 */
export function randomAction<Observation, Action>({
  text,
  actionSpace,
}: Pick<Env<Observation, Action>, "text" | "actionSpace">): (
  observation: Observation,
  random: RandomStream,
  info: Info,
) => Action {
  return (observation, random, info) => {
    const choices = text === undefined ? undefined : getChoices(text, observation, info);
    const parsedAction =
      choices === undefined || choices.length === 0
        ? undefined
        : text!.parseAction(random.choice(choices), observation, info);
    if (parsedAction !== undefined) return parsedAction;
    actionSpace.seed(random.integers(0, 2 ** 31));
    return actionSpace.sample();
  };
}
