import type { MaybePromise } from "../../core/maybe-promise.js";
import type { JsonValue } from "../../core/json.js";
import { stream } from "../../core/random/streams.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import {
  computeElo,
  computeGameValue,
  createMinimaxPolicy,
  createNamedOpponent,
  uniformPolicy,
  type BehaviorPolicy,
  type Env,
  type MatchScore,
  type RulesGame,
} from "../../envs/index.js";
import type { Agent } from "../agent/agent.js";
import { GameSlot, requireGame } from "../rollout/game-slot.js";
import { closeEnvs, openEnvs } from "../rollout/open-envs.js";
import { PastPolicy } from "../rollout/past-policy.js";
import { RolloutCollector } from "../rollout/rollout-collector.js";
import type { Matchup } from "../rollout/rollout-slot.js";
import { readExactPolicy, requireExactGame } from "./evaluate-exact.js";
import { scoreGame } from "./league.js";

/** A version of the policy to rate. */
export interface RatedVersion {
  readonly name: string;
  /** Trained values in the order of the model's parameters. */
  readonly values: Float32Array;
}

export interface RatePlayersOptions {
  /** Games of each pair where they are played. Default 100. */
  readonly games?: number;
  /** Games played at once. Default 64. */
  readonly numEnvs?: number;
  /** Default 0. */
  readonly seed?: number;
  readonly signal?: AbortSignal;
  readonly onWarning?: (message: string) => void;
  /** Called after each pair. */
  readonly onMatch?: (played: number, total: number) => void;
}

/** A player of the ladder. */
export interface RatedPlayer {
  readonly name: string;
  /** Rating; that of random play is 0. */
  readonly elo: number;
  /** Mean score against all others. */
  readonly score: number;
}

/** Ratings by all-play-all, the best player first. */
export interface EloLadder {
  /** Games of each pair; 0 if the scores are exact. */
  readonly games: number;
  readonly players: readonly RatedPlayer[];
}

/** Weight of an exact score, in games. */
const EXACT_GAMES = 1000;
const DEFAULT_GAMES = 100;

/** Plays a pair and returns the mean score of the first player. */
type Match = (first: string, second: string) => Promise<number>;

/**
 * Rates versions of an agent, random play and, where it exists, minimax by all-play-all in both
 * seats, as they sample. In a small game with constrained completions the scores are exact; in
 * others, games are played. The agent's parameters do not change.
 * @throws ENV_INVALID for an environment that is not a game, INVALID_ARGUMENT without versions
 */
export async function ratePlayers(
  agent: Agent,
  makeEnv: () => MaybePromise<Env>,
  versions: readonly RatedVersion[],
  options: RatePlayersOptions = {},
): Promise<EloLadder> {
  const { games = DEFAULT_GAMES, numEnvs = 64, onWarning = () => {}, onMatch, signal } = options;
  if (versions.length === 0) throw invalidArgument("There is no version of the policy to rate.");
  if (!(Number.isInteger(games) && games > 0))
    throw invalidArgument(`\`games\` must be an integer above 0, got ${games}.`);
  const envs = await openEnvs(makeEnv, Math.min(numEnvs, games), agent.settings);
  const policies = [0, 1].map(() => new PastPolicy(agent.model, agent.settings.completion));
  try {
    const game = requireGame(envs[0]);
    const isExact = canBeExact(agent, envs[0]);
    const names = ["random", ...(hasMinimax(envs[0]) ? ["minimax"] : []), ...versions.map(({ name }) => name)];
    const play = isExact
      ? await createExactMatch(agent, game as RulesGame<JsonValue>, versions, policies[0])
      : createSampledMatch(agent, envs, versions, policies, { games, seed: options.seed ?? 0, signal });
    const pairs = names.flatMap((first, i) => names.slice(i + 1).map((second) => [first, second] as const));
    const matches: MatchScore[] = [];
    for (const [first, second] of pairs) {
      signal?.throwIfAborted();
      const score = await agent.model.runIsolated(() => play(first, second));
      matches.push({
        first: names.indexOf(first),
        second: names.indexOf(second),
        score,
        games: isExact ? EXACT_GAMES : games,
      });
      onMatch?.(matches.length, pairs.length);
    }
    return { games: isExact ? 0 : games, players: rank(names, matches) };
  } finally {
    for (const policy of policies) await policy.release();
    await closeEnvs(envs, onWarning);
  }
}

function rank(names: readonly string[], matches: readonly MatchScore[]): RatedPlayer[] {
  const elo = computeElo(matches, names.length);
  const players = names.map((name, i) => {
    const scores = matches.flatMap(({ first, second, score }) =>
      first === i ? [score] : second === i ? [1 - score] : [],
    );
    return { name, elo: elo[i], score: scores.reduce((sum, score) => sum + score, 0) / scores.length };
  });
  return players.sort((a, b) => b.elo - a.elo);
}

function canBeExact(agent: Agent, env: Env): boolean {
  try {
    requireExactGame(agent, env);
    return true;
  } catch (error) {
    if (error instanceof LlamaGymError && error.code === "INVALID_ARGUMENT") return false;
    throw error;
  }
}

function hasMinimax(env: Env): boolean {
  try {
    createNamedOpponent(requireGame(env), "minimax");
    return true;
  } catch {
    return false;
  }
}

/** Scores pairs from the probabilities in all situations of the game. */
async function createExactMatch(
  agent: Agent,
  game: RulesGame<JsonValue>,
  versions: readonly RatedVersion[],
  policy: PastPolicy,
): Promise<Match> {
  const known = new Map<string, BehaviorPolicy>([["random", uniformPolicy]]);
  for (const { name, values } of versions) {
    await policy.load(values);
    known.set(name, await readExactPolicy(agent, game, policy.sampler));
  }
  const find = (name: string) => {
    const found = known.get(name) ?? createMinimaxPolicy(game);
    known.set(name, found);
    return found;
  };
  return async (first, second) => Promise.resolve(scoreExactly(game, find(first), find(second)));
}

/** Computes the mean score of the first policy against the second, over both seats. */
function scoreExactly(game: RulesGame<JsonValue>, a: BehaviorPolicy, b: BehaviorPolicy): number {
  const seats = [computeGameValue(game, [a, b]).outcomes[0], computeGameValue(game, [b, a]).outcomes[1]];
  return seats.reduce((sum, { win, draw }) => sum + (win + draw / 2) / 2, 0);
}

/** Plays games, each player in each seat equally often. */
function createSampledMatch(
  agent: Agent,
  envs: readonly Env[],
  versions: readonly RatedVersion[],
  [own, other]: readonly PastPolicy[],
  { games, seed, signal }: { readonly games: number; readonly seed: number; readonly signal: AbortSignal | undefined },
): Match {
  const { settings } = agent;
  const slots = envs.map((env, index) => {
    const random = stream(seed, "evaluation", index);
    return new GameSlot(env, {
      newEpisode: (seat, policy) =>
        agent.newEpisode(random, "train", { seat, sampler: (policy === "past" ? other : own).sampler }),
      random,
      settings,
      index,
    });
  });
  const collector = new RolloutCollector(slots);
  const starts = stream(seed, "evaluationStarts");
  const findValues = (name: string) => versions.find((version) => version.name === name)?.values;
  const isModel = (name: string) => findValues(name) !== undefined;
  return async (first, second) => {
    // Where there is minimax, the game can be enumerated.
    if (!isModel(first) && !isModel(second)) {
      const game = requireGame(envs[0]) as RulesGame<JsonValue>;
      return scoreExactly(game, uniformPolicy, createMinimaxPolicy(game));
    }
    const [mine, theirs] = isModel(first) ? [first, second] : [second, first];
    await own.load(findValues(mine)!);
    const values = findValues(theirs);
    if (values !== undefined) await other.load(values);
    const opponent: Matchup["opponent"] = values === undefined ? (theirs as "random" | "minimax") : "past";
    const specs = Array.from({ length: games }, (_, i) => ({
      seed: starts.integers(0, 2 ** 31),
      matchup: { opponent, seat: i % 2 },
    }));
    const { finishedEpisodes } = await collector.collectEpisodes(specs, { signal });
    const score = finishedEpisodes.reduce((sum, { game }) => sum + scoreGame(game!), 0) / finishedEpisodes.length;
    return mine === first ? score : 1 - score;
  };
}
