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
  { advantages, returns, units }: Pick<AdvantageResult, "advantages" | "returns" | "units">,
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
      const [unit, policyMask] = [units?.[i], undefined];
      return { ...scoredTurn, advantages: advantages[i][t], returns: returns?.[i][t], policyMask, unit };
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
  const units = new Set(turns.map(({ unit }) => unit));
  units.delete(undefined);
  return { sequences, tokens, units: units.size, meanTokens, entropyTokens: countActiveTokens(turns), entropyFactor };
}

/** Returns the indices of the turns of each unit; without units each turn is one. */
export function groupUnits(turns: readonly Pick<TurnSample, "unit">[]): number[][] {
  const units = new Map<number | string, number[]>();
  turns.forEach(({ unit }, i) => {
    const key = unit ?? `turn ${i}`;
    const indices = units.get(key);
    if (indices === undefined) units.set(key, [i]);
    else indices.push(i);
  });
  return [...units.values()];
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

/**
 * Returns the indices of trajectories that are trained: those with a reward, with `filtersGroups`
 * only of groups with a signal.
 */
export function findTrained(
  scored: readonly ScoredTrajectory[],
  hasSignal: readonly boolean[],
  filtersGroups: boolean,
): number[] {
  return scored.flatMap((trajectory, i) => (hasReward(trajectory) && (hasSignal[i] || !filtersGroups) ? [i] : []));
}

/** False for a completion that no reward function scored. */
function hasReward({ turns }: ScoredTrajectory): boolean {
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

/** Returns the trained trajectories whose unit is trained as a whole. */
export function withWholeUnits(trained: readonly number[], units: AdvantageResult["units"]): readonly number[] {
  if (units === undefined) return trained;
  const isTrained = new Set(trained);
  const broken = new Set(units.filter((_, i) => !isTrained.has(i)));
  return trained.filter((i) => units[i] !== undefined && !broken.has(units[i]));
}
