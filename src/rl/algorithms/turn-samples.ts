import type {
  AdvantageResult,
  MinibatchTotals,
  ScoredTrajectory,
  ScoredTurn,
  TurnSample,
  UpdateConfig,
} from "./algorithm-definition.js";
import { sum } from "./shared/arrays.js";
import type { NumberArray } from "./shared/statistics.js";

/** Advantages up to this magnitude are rounding errors of equal rewards. */
const ADVANTAGE_EPSILON = 1e-6;

/** Returns the turns of the trained trajectories in order; undefined for masked ones. */
export function toTurnSamples(
  scored: readonly ScoredTrajectory[],
  { advantages, returns }: Pick<AdvantageResult, "advantages" | "returns">,
  trainedIndices: readonly number[],
  { maskTruncatedCompletions = false, maskTruncatedEpisodes = false }: UpdateConfig,
  policyMasks: (turns: readonly ScoredTurn[]) => readonly NumberArray[] | undefined,
): (TurnSample | undefined)[] {
  const turns = trainedIndices.flatMap((i) =>
    scored[i].turns.map((scoredTurn, t): TurnSample | undefined => {
      const isMasked =
        (maskTruncatedCompletions && scoredTurn.turn.finishReason === "length") ||
        (maskTruncatedEpisodes && scored[i].end === "truncated");
      if (isMasked) return undefined;
      return { ...scoredTurn, advantages: advantages[i][t], returns: returns?.[i][t], policyMask: undefined };
    }),
  );
  const masks = policyMasks(turns.filter((turn) => turn !== undefined));
  if (masks === undefined) return turns;
  let maskIndex = 0;
  return turns.map((turn) => turn && { ...turn, policyMask: masks[maskIndex++] });
}

/** Returns the size of an optimizer step. */
export function minibatchTotals(
  turns: readonly TurnSample[],
  sequences: number,
  meanTokens: number,
  entropyFactor: number,
): MinibatchTotals {
  const tokens = countTokens(turns);
  return { sequences, tokens, meanTokens, entropyTokens: countActiveTokens(turns), entropyFactor };
}

/** Returns, for each trajectory, whether any advantage of its group is not 0. */
export function findInformativeGroups(
  scored: readonly ScoredTrajectory[],
  advantages: AdvantageResult["advantages"],
): boolean[] {
  const groups = new Set<number>();
  scored.forEach(({ group }, i) => {
    if (advantages[i].some((turn) => Array.from(turn).some((advantage) => Math.abs(advantage) > ADVANTAGE_EPSILON)))
      groups.add(group);
  });
  return scored.map(({ group }) => groups.has(group));
}

/** False for a completion that no reward function scored. */
export function hasReward({ turns }: ScoredTrajectory): boolean {
  return turns.every(({ turn }) => !Number.isNaN(turn.reward));
}

/** Returns the number of decisions. */
export function countTokens(turns: readonly TurnSample[]): number {
  return sum(turns.map(({ oldLogProbs }) => oldLogProbs.length));
}

function countActiveTokens(turns: readonly TurnSample[]): number {
  return sum(
    turns.map(({ policyMask, oldLogProbs }) => (policyMask === undefined ? oldLogProbs.length : sum(policyMask))),
  );
}
