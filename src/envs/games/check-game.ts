import { invalidEnv } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { RandomStream } from "../../core/random/random-stream.js";
import type { Game, GameResult } from "./game.js";
import { isReward } from "../reward-limit.js";
import { formatValue } from "../spaces/index.js";
import { getChoices } from "../text-interface.js";
import { maxDifference } from "../check/check-space.js";

const NUM_GAMES = 20;
const MAX_MOVES = 10_000;

/** Options of `checkGame`. */
export interface CheckGameOptions {
  /** Games of random moves. Default 20. */
  readonly games?: number;
}

/**
 * Checks a game in play: seats, observations, legal actions, rewards and ends; that a seed
 * determines the game, that a saved position continues identically, that texts name actions, and
 * that an illegal move is answered.
 * @throws ENV_INVALID at the first violation
 */
export async function checkGame(game: Game, { games = NUM_GAMES }: CheckGameOptions = {}): Promise<void> {
  if (!Number.isInteger(game.seats) || game.seats < 2)
    throw invalidEnv(`${nameOf(game)}.seats must be an integer of at least 2, got ${formatValue(game.seats)}.`);
  for (let seed = 0; seed < games; seed++) {
    const record = await playRandomly(game, seed);
    requireEqual(game, "Two games of the same seed and moves", record, await replay(game, seed, record));
  }
  await checkSavedPosition(game);
  await checkIllegalMove(game);
}

const nameOf = (game: Game) => game.constructor.name;

interface Move {
  readonly action: unknown;
  readonly result: GameResult<unknown>;
}

/** Plays a game of random legal moves and checks every result. */
async function playRandomly(game: Game, seed: number): Promise<Move[]> {
  const random = new RandomStream(seed, [1]);
  let result = await game.reset({ seed });
  checkResult(game, result);
  const moves: Move[] = [];
  while (result.seat !== undefined) {
    if (moves.length >= MAX_MOVES)
      throw invalidEnv(`${nameOf(game)} is not over after ${MAX_MOVES} random moves: give it a limit of moves.`);
    const action = chooseRandomly(game, result, random);
    result = await game.step(action);
    checkResult(game, result);
    if (result.info.illegal !== undefined)
      throw invalidEnv(`${nameOf(game)} lists ${formatValue(action)} among the legal actions and refuses it.`);
    moves.push({ action, result });
  }
  return moves;
}

async function replay(game: Game, seed: number, moves: readonly Move[]): Promise<Move[]> {
  await game.reset({ seed });
  const replayed: Move[] = [];
  for (const { action } of moves) replayed.push({ action, result: await game.step(action) });
  return replayed;
}

function chooseRandomly(game: Game, { info }: GameResult<unknown>, random: RandomStream): unknown {
  const { legalActions } = info as { legalActions?: readonly unknown[] };
  return legalActions === undefined ? game.actionSpace.sample() : random.choice(legalActions);
}

function checkResult(game: Game, result: GameResult<unknown>): void {
  const { seat, observation, info, rewards, terminated, truncated } = result;
  const name = nameOf(game);
  if (!Array.isArray(rewards) || rewards.length !== game.seats || !rewards.every((reward) => isReward(reward)))
    throw invalidEnv(
      `${name}: rewards must be ${game.seats} finite numbers, one for each seat, got ${formatValue(rewards)}.`,
    );
  const isOver = terminated || truncated;
  if ((seat === undefined) !== isOver)
    throw invalidEnv(
      `${name}: the seat must be undefined at the end and only there; got seat ${seat}, terminated ${terminated}.`,
    );
  if (seat === undefined) return;
  if (!Number.isInteger(seat) || seat < 0 || seat >= game.seats)
    throw invalidEnv(`${name}: a seat must be an integer from 0 to ${game.seats - 1}, got ${formatValue(seat)}.`);
  if (!game.observationSpace.contains(observation))
    throw invalidEnv(
      `${name}: ${formatValue(observation)} is not in the observation space ${game.observationSpace.toString()}.`,
    );
  const { legalActions } = info as { legalActions?: unknown };
  if (legalActions !== undefined && !(Array.isArray(legalActions) && legalActions.length > 0))
    throw invalidEnv(
      `${name}: info.legalActions must be a list with at least one action, got ${formatValue(legalActions)}.`,
    );
  for (const action of (legalActions ?? []) as unknown[])
    if (!game.actionSpace.contains(action))
      throw invalidEnv(`${name}: the legal action ${formatValue(action)} is not in ${game.actionSpace.toString()}.`);
  checkTexts(game, result);
}

/** Checks that the observation has a text, and that choices and legal actions are parsed back. */
function checkTexts(game: Game, { seat, observation, info }: GameResult<unknown>): void {
  const { text } = game;
  if (text.systemPromptOf(seat!).trim() === "" || text.formatObservation(observation, info).trim() === "")
    throw invalidEnv(`${nameOf(game)}: the system prompt and the text of an observation must not be empty.`);
  const legal = ((info as { legalActions?: readonly unknown[] }).legalActions ?? []).map((action) =>
    text.formatAction(action),
  );
  for (const completion of [...legal, ...(getChoices(text, observation, info) ?? [])]) {
    const action = text.parseAction(completion, observation, info);
    if (action !== undefined && text.formatAction(action) === completion) continue;
    throw invalidEnv(`${nameOf(game)}: text.parseAction() reads ${formatValue(completion)} as ${formatValue(action)}.`);
  }
}

/** Checks that a position that was saved as JSON in the middle of a game continues identically. */
async function checkSavedPosition(game: Game): Promise<void> {
  const moves = await playRandomly(game, 0);
  const middle = Math.floor(moves.length / 2);
  await replay(game, 0, moves.slice(0, middle));
  const saved = JSON.parse(JSON.stringify(game.getState())) as JsonValue;
  await playRandomly(game, 1);
  game.setState(saved);
  const rest: Move[] = [];
  for (const { action } of moves.slice(middle)) rest.push({ action, result: await game.step(action) });
  requireEqual(game, "The moves after getState() and after setState()", moves.slice(middle), rest);
}

async function checkIllegalMove(game: Game): Promise<void> {
  const { seat } = await game.reset({ seed: 0 });
  const result = await game.step(undefined);
  checkResult(game, result);
  if (result.info.illegal !== seat)
    throw invalidEnv(`${nameOf(game)}: a reply without an action must be refused, with the seat as info.illegal.`);
}

function requireEqual(game: Game, subject: string, a: unknown, b: unknown): void {
  if (maxDifference(a, b) !== 0) throw invalidEnv(`${nameOf(game)}: ${subject} differ.`);
}
