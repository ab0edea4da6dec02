import type { Env } from "../envs/env.js";
import type { Info } from "../envs/info.js";
import { choicesFor } from "../envs/text-form.js";
import type { RandomStream } from "../tensor/random.js";

/**
 * Takes an action at random, for replies that mean none (the option invalidReply.fallback): one of the replies that the
 * environment lists, or else any of its action space.
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
    const choices = text === undefined ? undefined : choicesFor(text, observation, info);
    const drawn =
      choices === undefined || choices.length === 0
        ? undefined
        : text!.parseAction(random.choice(choices), observation, info);
    if (drawn !== undefined) return drawn;
    actionSpace.seed(random.integers(0, 2 ** 31));
    return actionSpace.sample();
  };
}
