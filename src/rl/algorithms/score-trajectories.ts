import type { CausalLM } from "../../models/index.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import type { ScoredTrajectory, ScoredTurn } from "./algorithm-definition.js";
import type { LearnerContext } from "./learner.js";
import type { LogProbScorer, TurnScores } from "./update/log-prob-scorer.js";
import { isStale } from "./stale-trajectories.js";
import { decisionIndices } from "./update/turn-batch.js";

export interface ScoreRequest extends Pick<LearnerContext, "temperature" | "isTruncatedSampling"> {
  /** Adds log-probabilities under the reference policy. */
  readonly reference: boolean;
  /** The reference policy, if it is not the model without its adapter. */
  readonly referenceModel?: CausalLM | undefined;
  readonly entropies: boolean;
  /** Adds the log-probabilities of all alternatives of constrained decisions. */
  readonly alternatives: boolean;
  /** Adds values, and bootstrap values of trajectories that did not end. */
  readonly values: boolean;
  /** Episodes of a group; a trajectory without a group forms one with its neighbors. */
  readonly groupSize: number;
}

/** Scores of turns by turn, and bootstrap values by trajectory. */
interface PolicyScores {
  readonly scores: TurnScores;
  readonly indices: ReadonlyMap<Turn, number>;
  readonly bootstrapValues: ReadonlyMap<Trajectory, number>;
  /**
   * Turns whose recorded log-probabilities are not those of the trained distribution: truncated
   * sampling, older weights.
   */
  readonly replaced: ReadonlySet<Turn>;
}

/**
 * Adds what the policy and the reference policy assign to trajectories before an update. Turns are
 * scored again only where sampling did not record what is needed: values, entropies,
 * log-probabilities before truncation (top-p and the like), or those of the weights before the
 * update, if older ones sampled.
 */
export async function scoreTrajectories(
  trajectories: readonly Trajectory[],
  scorer: LogProbScorer,
  request: ScoreRequest,
): Promise<ScoredTrajectory[]> {
  const { temperature, reference, referenceModel } = request;
  const policy = await scorePolicy(trajectories, scorer, request);
  const turns = trajectories.flatMap((trajectory) => trajectory.turns);
  const refOptions = referenceModel === undefined ? { adapter: false } : { model: referenceModel };
  const refScores = reference ? await scorer.score(turns, { temperature, ...refOptions }) : undefined;
  return assembleScores(trajectories, request, policy, refScores);
}

/** Returns trajectories with the scores recorded during sampling alone. */
export function recordedScores(
  trajectories: readonly Trajectory[],
  request: Pick<ScoreRequest, "values" | "groupSize">,
): ScoredTrajectory[] {
  return assembleScores(trajectories, request);
}

function assembleScores(
  trajectories: readonly Trajectory[],
  { values, groupSize }: Pick<ScoreRequest, "values" | "groupSize">,
  policy?: PolicyScores,
  refScores?: TurnScores,
): ScoredTrajectory[] {
  let turnIndex = 0;
  // Seats of one game are never compared: what one wins the other loses.
  const numSeats = 1 + trajectories.reduce((max, { seat = 0 }) => Math.max(max, seat), 0);
  return trajectories.map((trajectory, i) => ({
    end: trajectory.end,
    rewardsPerFunction: trajectory.rewardsPerFunction,
    seat: trajectory.seat,
    group: groupSize > 1 ? (trajectory.group ?? Math.floor(i / groupSize)) * numSeats + (trajectory.seat ?? 0) : 0,
    bootstrapValue: policy?.bootstrapValues.get(trajectory) ?? 0,
    bootstrapPrompt: trajectory.bootstrapPrompt,
    turns: trajectory.turns.map((turn) => scoreTurn(turn, values, policy, refScores?.logProbs[turnIndex++])),
  }));
}

async function scorePolicy(
  trajectories: readonly Trajectory[],
  scorer: LogProbScorer,
  { temperature, isTruncatedSampling, entropies, alternatives, values }: ScoreRequest,
): Promise<PolicyScores | undefined> {
  const allTurns = trajectories.flatMap(({ turns }) => turns);
  const staleTurns = trajectories.filter(isStale).flatMap(({ turns }) => turns);
  const replaced = new Set(isTruncatedSampling ? allTurns : staleTurns);
  const rescored = allTurns.filter(
    (turn) =>
      replaced.has(turn) || entropies || (alternatives && isConstrained(turn)) || (values && !hasSampledValues(turn)),
  );
  const partial = values ? trajectories.filter(({ bootstrapPrompt }) => bootstrapPrompt !== undefined) : [];
  if (rescored.length + partial.length === 0) return undefined;
  const states = partial.map(({ bootstrapPrompt }) => ({
    prompt: bootstrapPrompt!,
    tokens: [],
    allowedTokens: undefined,
  }));
  // Log-probabilities were recorded when sampling, except where turns are replaced.
  const valuesOnly = replaced.size === 0 && !entropies && !alternatives;
  const scores = await scorer.score([...rescored, ...states], { temperature, valuesOnly });
  return {
    scores,
    replaced,
    indices: new Map(rescored.map((turn, index) => [turn, index])),
    bootstrapValues: new Map(
      partial.map((trajectory, i) => [trajectory, scores.values![rescored.length + i][0]] as const),
    ),
  };
}

function scoreTurn(
  turn: Turn,
  values: boolean,
  policy: PolicyScores | undefined,
  refLogProbs: Float64Array | undefined,
): ScoredTurn {
  const decisions = decisionIndices(turn);
  const atDecisions = (numbers: readonly number[]) => Float64Array.from(decisions, (token) => numbers[token]);
  const index = policy?.indices.get(turn);
  const rescored = index === undefined ? undefined : policy!.scores;
  return {
    turn,
    oldLogProbs: policy?.replaced.has(turn) === true ? rescored!.logProbs[index!] : atDecisions(turn.logProbs),
    oldValues: values ? (rescored?.values?.[index!] ?? atDecisions(turn.values!)) : undefined,
    refLogProbs,
    entropies: rescored?.entropies?.[index!],
    alternatives: rescored?.alternatives?.[index!],
  };
}

const isConstrained = ({ actionCandidates, allowedTokens }: Turn) =>
  actionCandidates !== undefined || allowedTokens !== undefined;

/** Whether the values of a turn's decisions were recorded during sampling. */
function hasSampledValues(turn: Turn): boolean {
  const { values } = turn;
  return values !== undefined && decisionIndices(turn).every((token) => !Number.isNaN(values[token]));
}
