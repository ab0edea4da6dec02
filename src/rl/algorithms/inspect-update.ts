import type { Turn } from "../rollout/trajectory.js";
import type { AdvantageResult, ScoredTrajectory, TurnSample, UpdateConfig } from "./algorithm-definition.js";
import type { TurnInsight } from "./learner.js";
import type { StepOutcome } from "./policy-metrics.js";
import { decisionIndices } from "./update/turn-batch.js";

/** An update whose optimizer steps have been taken. */
interface InspectedUpdate {
  readonly scored: readonly ScoredTrajectory[];
  readonly result: Pick<AdvantageResult, "advantages" | "returns" | "teacherLogProbs">;
  readonly hasSignal: readonly boolean[];
  readonly turns: readonly (TurnSample | undefined)[];
  readonly outcomes: readonly StepOutcome[];
}

/** Settings that bound the ratio, under the names of PPO and of the GRPO family. */
interface ClippingConfig {
  readonly cliprange?: unknown;
  readonly epsilon?: unknown;
  readonly epsilonHigh?: unknown;
}

/** Collects what an update computed about some of its turns. */
export function inspectUpdate(
  { scored, result, hasSignal, turns, outcomes }: InspectedUpdate,
  inspected: ReadonlySet<Turn>,
  config: UpdateConfig & ClippingConfig,
): ReadonlyMap<Turn, TurnInsight> {
  const samples = new Map<Turn, TurnSample>();
  for (const sample of turns) if (sample !== undefined && inspected.has(sample.turn)) samples.set(sample.turn, sample);
  const ratios = collectRatios(outcomes, inspected);
  const clipRange = clippingRange(config);
  const insights = new Map<Turn, TurnInsight>();
  for (const [i, trajectory] of scored.entries()) {
    for (const [t, { turn, oldValues, refLogProbs, entropies }] of trajectory.turns.entries()) {
      if (!inspected.has(turn)) continue;
      insights.set(turn, {
        decisions: decisionIndices(turn),
        refLogProbs,
        teacherLogProbs: result.teacherLogProbs?.[i][t],
        values: oldValues,
        entropies,
        advantages: result.advantages[i][t],
        returns: result.returns?.[i][t],
        policyMask: samples.get(turn)?.policyMask,
        ratios: ratios.get(turn),
        clipRange,
        isTrained: samples.has(turn),
        hasSignal: hasSignal[i],
      });
    }
  }
  return insights;
}

/** Returns the ratios of the last step of each turn. */
function collectRatios(
  outcomes: readonly StepOutcome[],
  inspected: ReadonlySet<Turn>,
): ReadonlyMap<Turn, Float32Array> {
  const ratios = new Map<Turn, Float32Array>();
  for (const { turns, result } of outcomes) {
    const perTurn = result.perTurn.tokenRatio ?? result.perTurn.ratio;
    if (perTurn === undefined) continue;
    for (const [i, { turn }] of turns.entries()) if (inspected.has(turn)) ratios.set(turn, perTurn[i]);
  }
  return ratios;
}

function clippingRange({ cliprange, epsilon = cliprange, epsilonHigh = epsilon }: ClippingConfig) {
  if (typeof epsilon !== "number" || typeof epsilonHigh !== "number") return undefined;
  return [1 - epsilon, 1 + epsilonHigh] as const;
}
