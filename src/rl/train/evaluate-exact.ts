import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { RandomStream } from "../../core/random/random-stream.js";
import {
  type Env,
  computeBestMoves,
  computeGameValue,
  computeNashConv,
  createMinimaxPolicy,
  informationKey,
  listInformation,
  uniformPolicy,
  type BehaviorPolicy,
  type BestMoves,
  type Outcomes,
  RulesGame,
} from "../../envs/index.js";
import type { Agent } from "../agent/agent.js";
import type { Metrics } from "../algorithms/learner.js";
import type { CompletionSampler } from "../rollout/completion-sampler.js";
import { requireGame } from "../rollout/game-slot.js";

/** Exact result of a policy in one seat. */
export interface ExactOutcome extends Outcomes {
  readonly opponent: "itself" | "random" | "minimax";
  readonly seat: number;
  /** Expected return. */
  readonly return: number;
}

/** Exact values of a policy in a game. */
export interface ExactEvaluation {
  /** Situations of a player that can be told apart. */
  readonly informationSets: number;
  /**
   * What best responses win against the policy in both seats together: 0 for perfect play, the
   * value of the game aside.
   */
  readonly nashConv: number;
  readonly outcomes: readonly ExactOutcome[];
  /** Only in games in which nothing is hidden. */
  readonly bestMoves?: BestMoves;
}

/**
 * Exact values of a policy as it samples, and of the one that always takes the most probable
 * action.
 */
export interface ExactEvaluations {
  readonly sampled: ExactEvaluation;
  readonly greedy: ExactEvaluation;
}

/**
 * Computes exact values of an agent in a small game: its probabilities in all situations, then the
 * expected results against itself, random play and minimax, and what best responses win (NashConv).
 * Nothing is sampled.
 * @throws ENV_INVALID for an environment that is not a game; INVALID_ARGUMENT for a game that is
 * too large or has chance during play, for completions that are not constrained to choices, and for
 * prompts with earlier turns.
 */
export async function evaluateExact(agent: Agent, env: Env): Promise<ExactEvaluations> {
  const game = requireExactGame(agent, env);
  const known = await agent.model.runIsolated(() => scorePolicy(agent, game));
  const sampled = toBehaviorPolicy(known);
  const greedy: BehaviorPolicy = (information) => {
    const probabilities = sampled(information);
    const best = probabilities.indexOf(Math.max(...probabilities));
    return probabilities.map((_, i) => (i === best ? 1 : 0));
  };
  const minimax = game.isPerfectInformation ? createMinimaxPolicy(game) : undefined;
  const evaluate = (policy: BehaviorPolicy): ExactEvaluation => ({
    informationSets: known.size,
    ...evaluatePolicy(game, policy, minimax),
  });
  return { sampled: evaluate(sampled), greedy: evaluate(greedy) };
}

/** Reads the policy that an agent's sampler follows, or another one of the same form. */
export async function readExactPolicy(
  agent: Agent,
  game: RulesGame<JsonValue>,
  sampler: CompletionSampler,
): Promise<BehaviorPolicy> {
  return toBehaviorPolicy(await scorePolicy(agent, game, sampler));
}

const toBehaviorPolicy =
  (known: ReadonlyMap<string, readonly number[]>): BehaviorPolicy =>
  (information) =>
    known.get(informationKey(information))!;

/**
 * Returns the game of an environment in which an agent has exact values. Throws as `evaluateExact`.
 */
export function requireExactGame(agent: Agent, env: Env): RulesGame<JsonValue> {
  const game = requireGame(env);
  if (!(game instanceof RulesGame) || game.listStarts() === undefined)
    throw invalidArgument(
      `${game.constructor.name} lists no first positions, which exact values need: it has too many positions, or chance during play. Evaluate it by playing games, or implement listStarts() if the game is your own.`,
    );
  if (agent.settings.prompt.historyTurns > 0 && agent.formatPrompt === undefined)
    throw invalidArgument("Exact values need prompts that show the present position alone: set `historyTurns` to 0.");
  const { observation, info } = game.reset({ seed: 0 });
  if (agent.getChoices(observation, info) !== undefined) return game as RulesGame<JsonValue>;
  throw invalidArgument(
    'Exact values need completions that are constrained to the legal moves: set `actionMode` to "scored" or "choices".',
  );
}

/** Returns the evaluation as metrics of a run. */
export function toExactMetrics({ sampled, greedy }: ExactEvaluations): Metrics {
  const metrics: Record<string, number> = {
    "eval/nash_conv": sampled.nashConv,
    "eval/nash_conv_greedy": greedy.nashConv,
  };
  for (const { opponent, seat, ...outcome } of sampled.outcomes) {
    if (opponent === "itself") continue;
    for (const name of ["win", "draw", "loss"] as const)
      metrics[`eval/${name}_against_${opponent}_seat_${seat}`] = outcome[name];
  }
  return metrics;
}

/** Computes the probabilities of the legal actions in each situation. */
async function scorePolicy(
  agent: Agent,
  game: RulesGame<JsonValue>,
  sampler?: CompletionSampler,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const random = new RandomStream(0);
  const known = new Map<string, readonly number[]>();
  await Promise.all(
    listInformation(game).map(async (information) => {
      const { seat, observation, legalActions } = information;
      const episode = agent.newEpisode(random, "train", { seat, sampler });
      episode.observe(observation, { legalActions, seat });
      const probabilities = await episode.actionProbabilities();
      // Actions with equal texts are one choice.
      const values = legalActions.map((action) => probabilities.get(game.text.formatAction(action)));
      if (values.some((value) => value === undefined))
        throw invalidArgument(`The agent's choices for ${JSON.stringify(observation)} are not the legal actions.`);
      known.set(informationKey(information), values as number[]);
    }),
  );
  return known;
}

function evaluatePolicy(
  game: RulesGame<JsonValue>,
  policy: BehaviorPolicy,
  minimax: BehaviorPolicy | undefined,
): Omit<ExactEvaluation, "informationSets"> {
  const opponents: readonly (readonly [ExactOutcome["opponent"], BehaviorPolicy])[] = [
    ["itself", policy],
    ["random", uniformPolicy],
    ...(minimax === undefined ? [] : [["minimax", minimax] as const]),
  ];
  const outcomes = opponents.flatMap(([opponent, other]) =>
    [0, 1].map((seat) => {
      const { returns, outcomes: all } = computeGameValue(game, seat === 0 ? [policy, other] : [other, policy]);
      return { opponent, seat, return: returns[seat], ...all[seat] };
    }),
  );
  return {
    nashConv: computeNashConv(game, [policy, policy]),
    outcomes,
    ...(minimax === undefined ? {} : { bestMoves: computeBestMoves(game, policy, minimax) }),
  };
}
