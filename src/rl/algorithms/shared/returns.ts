import { choice, defineSettings, number } from "../../../core/settings.js";
import { sum } from "./arrays.js";
import { returnsByKind, type ReturnKind } from "./discounted-returns.js";
import type { NumberArray } from "./statistics.js";

/** Settings of turn returns; see docs/algorithms/credit.md. */
export const returnSettings = defineSettings({
  returns: choice({
    default: "return-to-go",
    choices: ["return-to-go", "episode-return"],
    description: "Return of a turn: the rewards from it on, or those of the whole episode.",
    source: "ORLLLaM",
  }),
  gamma: number({ default: 0.99, min: 0, max: 1, description: "Discount factor per turn.", source: "ORLLLaM" }),
  rewardSignal: choice({
    default: "step",
    choices: ["step", "terminal"],
    description: "Whether rewards count when they occur or as a sum at the end of the episode.",
    source: "ORLLLaM",
  }),
});

export interface ReturnConfig {
  readonly returns: ReturnKind;
  readonly gamma: number;
  readonly rewardSignal: "step" | "terminal";
}

/** Computes the return of each turn of an episode from its turns' rewards. */
export function turnReturns(rewards: NumberArray, { returns, gamma, rewardSignal }: ReturnConfig): Float64Array {
  const signal = rewardSignal === "step" ? rewards : moveToEnd(rewards);
  return returnsByKind(signal, { returns, gamma });
}

function moveToEnd(rewards: NumberArray): Float64Array {
  const signal = new Float64Array(rewards.length);
  if (rewards.length > 0) signal[rewards.length - 1] = sum(rewards);
  return signal;
}
