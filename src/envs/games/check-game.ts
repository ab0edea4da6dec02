import { checkOptions, COUNT } from "../../core/settings.js";
import { errorMessage, invalidEnv, LlamaGymError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { checkGameResult, type Game, type GameResult } from "./game.js";
import { Discrete, formatValue } from "../spaces/index.js";
import { getChoices } from "../text-interface.js";
import { maxDifference } from "../check/check-space.js";

const NUM_GAMES = 20;
const MAX_MOVES = 10_000;
/** Games after which every seat has had a turn, by chance also in short games. */
const MIN_GAMES_FOR_SEATS = 10;

/** Options of `checkGame`. */
export interface CheckGameOptions {
  /** Games of random moves. Default 20. */
  readonly games?: number;
}

/**
 * Checks a game in play: seats, observations, legal actions, rewards and ends; that a seed
 * determines the game, that a saved position continues identically, that texts name actions, that
 * illegal moves are refused, and that a game that is over takes no further moves.
 * @throws ENV_INVALID at the first violation, and what the game throws if it is a LlamaGymError
 */
export async function checkGame(game: Game, options: CheckGameOptions = {}): Promise<void> {
  checkOptions("checkGame", options, { games: COUNT });
  const { games = NUM_GAMES } = options;
  if (!Number.isInteger(game.seats) || game.seats < 2)
    throw invalidEnv(`${nameOf(game)}.seats must be an integer of at least 2, got ${formatValue(game.seats)}.`);
  try {
    const movers = new Set<number>();
    for (let seed = 0; seed < games; seed++) {
      const record = await playRandomly(game, seed);
      requireEqual(game, "Two games of the same seed and moves", record, await replay(game, seed, record));
      for (const { seat } of record) movers.add(seat);
    }
    const idle = Array.from({ length: game.seats }, (_, seat) => seat).find((seat) => !movers.has(seat));
    if (games >= MIN_GAMES_FOR_SEATS && idle !== undefined)
      throw invalidEnv(`${nameOf(game)}: seat ${idle} had no turn in ${games} games.`);
    await checkEnd(game);
    await checkSavedPosition(game);
    await checkIllegalMoves(game);
  } catch (error) {
    if (error instanceof LlamaGymError) throw error;
    throw invalidEnv(`${nameOf(game)} failed in play: ${errorMessage(error)}`, error);
  }
}

const nameOf = (game: Game) => game.constructor.name;

interface Move {
  readonly seat: number;
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
    const { seat } = result;
    const action = chooseRandomly(game, result, random);
    result = await game.step(action);
    checkResult(game, result);
    if (result.info.illegal !== undefined)
      throw invalidEnv(`${nameOf(game)} lists ${formatValue(action)} among the legal actions and refuses it.`);
    moves.push({ seat, action, result });
  }
  return moves;
}

async function replay(game: Game, seed: number, moves: readonly Move[]): Promise<Move[]> {
  await game.reset({ seed });
  const replayed: Move[] = [];
  for (const { seat, action } of moves) replayed.push({ seat, action, result: await game.step(action) });
  return replayed;
}

function chooseRandomly(game: Game, { info }: GameResult<unknown>, random: RandomStream): unknown {
  const { legalActions } = info as { legalActions?: readonly unknown[] };
  return legalActions === undefined ? game.actionSpace.sample() : random.choice(legalActions);
}

function checkResult(game: Game, result: GameResult<unknown>): void {
  const { seat, observation, info } = checkGameResult(game, result);
  if (seat === undefined) return;
  const name = nameOf(game);
  if (!game.observationSpace.contains(observation))
    throw invalidEnv(
      `${name}: ${formatValue(observation)} is not in the observation space ${game.observationSpace.toString()}.`,
    );
  const { legalActions: listed = [] } = info as { legalActions?: readonly unknown[] };
  if (new Set(listed.map((action) => JSON.stringify(action))).size < listed.length)
    throw invalidEnv(`${name}: info.legalActions lists an action twice: ${formatValue(listed)}.`);
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
  for (const { seat, action } of moves.slice(middle)) rest.push({ seat, action, result: await game.step(action) });
  requireEqual(game, "The moves after getState() and after setState()", moves.slice(middle), rest);
}

/**
 * Checks that a game that is over takes no moves, and that a reset without a seed starts the next
 * one.
 */
async function checkEnd(game: Game): Promise<void> {
  const moves = await playRandomly(game, 0);
  const isTaken = await Promise.resolve()
    .then(() => game.step(moves.at(-1)?.action))
    .then(
      () => true,
      () => false,
    );
  if (isTaken) throw invalidEnv(`${nameOf(game)}: step() must throw when the game is over.`);
  const next = await game.reset();
  checkResult(game, next);
  if (next.seat === undefined) throw invalidEnv(`${nameOf(game)}: reset() without a seed must start a game.`);
}

async function checkIllegalMoves(game: Game): Promise<void> {
  const start = await game.reset({ seed: 0 });
  await checkRefusal(game, start, "a reply without an action", undefined);
  const moves = await playRandomly(game, 0);
  const middle = moves.slice(0, Math.floor(moves.length / 2));
  const { result } = (await replay(game, 0, middle)).at(-1) ?? { result: await game.reset({ seed: 0 }) };
  const action = sampleIllegal(game, result);
  if (action !== undefined) await checkRefusal(game, result, "an action that is not legal", action);
}

async function checkRefusal(
  game: Game,
  { seat }: GameResult<unknown>,
  subject: string,
  action: unknown,
): Promise<void> {
  const result = await game.step(action);
  checkResult(game, result);
  if (result.info.illegal === seat) return;
  const problem = `${subject} must be refused, with the seat as info.illegal`;
  throw invalidEnv(`${nameOf(game)}: ${problem}; ${formatValue(action)} was taken.`);
}

/** Samples a number that is not among the legal actions; undefined if there is none. */
function sampleIllegal({ actionSpace }: Game, { info }: GameResult<unknown>): unknown {
  const { legalActions } = info as { legalActions?: readonly unknown[] };
  // Texts may say what no list can hold, such as any offer.
  if (legalActions === undefined || !(actionSpace instanceof Discrete)) return undefined;
  return Array.from({ length: actionSpace.n }, (_, i) => actionSpace.start + i).find(
    (action) => !legalActions.includes(action),
  );
}

function requireEqual(game: Game, subject: string, a: unknown, b: unknown): void {
  if (maxDifference(a, b) !== 0) throw invalidEnv(`${nameOf(game)}: ${subject} differ.`);
}
