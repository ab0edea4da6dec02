import { invalidEnv } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import type { RulesGame } from "./rules-game.js";

/** Positions up to which a game is enumerated. */
const MAX_POSITIONS = 300_000;
const TOLERANCE = 1e-6;

/** Games whose positions have been checked. */
const checkedGames = new WeakSet<object>();

/** A position on the path from the start, with the actions that were not followed yet. */
interface Step<Position> {
  readonly key: string;
  readonly position: Position;
  readonly actions: unknown[];
}

/**
 * Checks, once for a game, what exact values assume: probabilities of the first positions that add
 * up to 1, no chance in `next`, no position that returns, equal actions where a seat knows as much,
 * returns of both seats that add up to 0.
 * @throws ENV_INVALID for a game that is otherwise, or too large
 */
export function checkPositions<Position extends JsonValue, Action>(
  game: RulesGame<Position, Action>,
  starts: readonly { readonly position: Position; readonly probability: number }[],
): void {
  if (checkedGames.has(game)) return;
  const fail = (problem: string) => invalidEnv(`${game.constructor.name} has no exact values: ${problem}.`);
  const total = starts.reduce((sum, { probability }) => sum + probability, 0);
  if (!starts.every(({ probability }) => probability >= 0) || !(Math.abs(total - 1) < TOLERANCE))
    throw fail(`the probabilities of listStarts() add up to ${total}, not to 1`);
  const openKeys = new Set<string>();
  const doneKeys = new Set<string>();
  const path: Step<Position>[] = [];
  /** Legal actions by seat and observation. */
  const known = new Map<string, string>();
  const checkActions = (position: Position, seat: number, actions: readonly unknown[]) => {
    if (actions.length === 0) throw fail(`seat ${seat} has no legal action in ${JSON.stringify(position)}`);
    const observation = game.observe(position, seat);
    const listed = JSON.stringify(actions);
    const other = known.get(`${seat} ${observation}`) ?? listed;
    if (other !== listed)
      throw fail(
        `seat ${seat} observes ${JSON.stringify(observation)} where it may do ${listed}, and also where ${other}`,
      );
    known.set(`${seat} ${observation}`, listed);
  };
  const enter = (position: Position) => {
    const key = JSON.stringify(position);
    if (openKeys.has(key))
      throw fail(`play returns to the position ${key}. Limit the moves, or leave out listStarts()`);
    if (doneKeys.has(key)) return;
    const seat = game.getSeat(position);
    const isOver = seat === undefined;
    if (isOver) {
      const [first, second] = game.getReturns(position);
      if (!(Math.abs(first + second) < TOLERANCE))
        throw fail(`the returns [${first}, ${second}] of the end ${key} do not add up to 0`);
    }
    const actions = isOver ? [] : [...game.listActions(position)];
    if (!isOver) checkActions(position, seat, actions);
    openKeys.add(key);
    if (openKeys.size + doneKeys.size > MAX_POSITIONS)
      throw fail(`it has more than ${MAX_POSITIONS} positions. Leave out listStarts()`);
    path.push({ key, position, actions });
  };
  for (const { position } of starts) {
    enter(position);
    for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
      if (step.actions.length > 0) enter(game.follow(step.position, step.actions.pop() as Action));
      else {
        path.pop();
        openKeys.delete(step.key);
        doneKeys.add(step.key);
      }
    }
  }
  checkedGames.add(game);
}
