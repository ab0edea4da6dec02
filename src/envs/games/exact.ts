import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { mean } from "../../core/numbers.js";
import { checkPositions } from "./check-positions.js";
import type { RulesGame } from "./rules-game.js";

/** What a player knows when it is to move. */
export interface Information {
  readonly seat: number;
  /** The observation as text, which tells all that the player knows. */
  readonly observation: string;
  readonly legalActions: readonly number[];
}

/** Probabilities of the legal actions in the order of `legalActions`. */
export type BehaviorPolicy = (information: Information) => readonly number[];

/** Plays all legal actions with equal probability. */
export const uniformPolicy: BehaviorPolicy = ({ legalActions }) => legalActions.map(() => 1 / legalActions.length);

/** Probabilities of the outcomes for one seat. */
export interface Outcomes {
  readonly win: number;
  readonly draw: number;
  readonly loss: number;
}

/** Exact result of a game between policies. */
export interface GameValue {
  /** Expected return of each seat. */
  readonly returns: readonly number[];
  readonly outcomes: readonly Outcomes[];
}

interface Node<Position> {
  readonly position: Position;
  readonly probability: number;
}

/**
 * The first positions of a game whose rules have no chance after the start. @throws
 * INVALID_ARGUMENT for other games, ENV_INVALID as `checkPositions`
 */
function listStarts<Position extends JsonValue>(game: RulesGame<Position>): readonly Node<Position>[] {
  const starts = game.listStarts();
  if (starts === undefined)
    throw invalidArgument(`${game.constructor.name} cannot be enumerated. Evaluate it by playing games.`);
  checkPositions(game, starts);
  return starts;
}

const getKey = (position: JsonValue) => JSON.stringify(position);

function inform<Position extends JsonValue>(game: RulesGame<Position>, position: Position, seat: number): Information {
  return { seat, observation: game.observe(position, seat), legalActions: game.listActions(position) };
}

/**
 * Returns checked probabilities. @throws INVALID_ARGUMENT unless there is one for each action,
 * adding up to 1
 */
function choose(policy: BehaviorPolicy, information: Information): readonly number[] {
  const probabilities = policy(information);
  const sum = probabilities.reduce((total, value) => total + value, 0);
  const isValid =
    probabilities.length === information.legalActions.length && probabilities.every((value) => value >= 0);
  if (isValid && Math.abs(sum - 1) < 1e-6) return probabilities;
  throw invalidArgument(
    `A policy must return ${information.legalActions.length} probabilities that add up to 1 for ${JSON.stringify(information.observation)}, got ${JSON.stringify(probabilities)}.`,
  );
}

/** Computes the exact result of a game between one policy for each seat. */
export function computeGameValue<Position extends JsonValue>(
  game: RulesGame<Position>,
  policies: readonly BehaviorPolicy[],
): GameValue {
  const known = new Map<string, number[]>();
  // Expected returns of both seats, then probabilities of win, draw and loss of the first.
  const evaluate = (position: Position): number[] => {
    const key = getKey(position);
    const found = known.get(key);
    if (found !== undefined) return found;
    const seat = game.getSeat(position);
    const value = seat === undefined ? evaluateEnd(game.getReturns(position)) : [0, 0, 0, 0, 0];
    if (seat !== undefined) {
      const information = inform(game, position, seat);
      choose(policies[seat], information).forEach((probability, i) => {
        if (probability === 0) return;
        const child = evaluate(game.next(position, information.legalActions[i]));
        child.forEach((part, j) => (value[j] += probability * part));
      });
    }
    known.set(key, value);
    return value;
  };
  const total = [0, 0, 0, 0, 0];
  for (const { position, probability } of listStarts(game))
    evaluate(position).forEach((part, j) => (total[j] += probability * part));
  const [first, second, win, draw, loss] = total;
  return {
    returns: [first, second],
    outcomes: [
      { win, draw, loss },
      { win: loss, draw, loss: win },
    ],
  };
}

function evaluateEnd([first, second]: readonly number[]): number[] {
  return [first, second, first > 0 ? 1 : 0, first === 0 ? 1 : 0, first < 0 ? 1 : 0];
}

/** A best response and its expected return. */
export interface BestResponse {
  readonly value: number;
  readonly policy: BehaviorPolicy;
}

/** Computes what a seat wins at most, exactly, against the policy of the other. */
export function computeBestResponse<Position extends JsonValue>(
  game: RulesGame<Position>,
  opponent: BehaviorPolicy,
  seat: number,
): BestResponse {
  const actions = new Map<string, number>();
  // Values are weighted with the probability that chance and the opponent lead to the nodes. Nodes
  // that the player cannot tell apart share their history of own moves, so they meet in one call.
  const solve = (nodes: readonly Node<Position>[]): number => {
    let total = 0;
    const groups = new Map<string, Node<Position>[]>();
    for (const node of nodes) {
      const mover = game.getSeat(node.position);
      if (mover === undefined) total += node.probability * game.getReturns(node.position)[seat];
      else if (mover === seat) {
        const key = game.observe(node.position, seat);
        groups.set(key, [...(groups.get(key) ?? []), node]);
      }
    }
    const others = nodes.filter(({ position }) => game.getSeat(position) === 1 - seat);
    if (others.length > 0) total += solve(others.flatMap((node) => expand(node)));
    for (const [key, group] of groups) total += solveGroup(key, group);
    return total;
  };
  const expand = ({ position, probability }: Node<Position>): Node<Position>[] => {
    const information = inform(game, position, 1 - seat);
    const probabilities = choose(opponent, information);
    return information.legalActions.flatMap((action, i) =>
      probabilities[i] === 0
        ? []
        : [{ position: game.next(position, action), probability: probability * probabilities[i] }],
    );
  };
  const known = new Map<string, number>();
  const solveGroup = (key: string, group: readonly Node<Position>[]): number => {
    const weight = group.reduce((sum, { probability }) => sum + probability, 0);
    const found = game.isPerfectInformation ? known.get(key) : undefined;
    if (found !== undefined) return found * weight;
    const values = game.listActions(group[0].position).map((action) => ({
      action,
      value: solve(group.map((node) => ({ ...node, position: game.next(node.position, action) }))),
    }));
    const best = values.reduce((top, candidate) => (candidate.value > top.value ? candidate : top));
    actions.set(key, best.action);
    if (game.isPerfectInformation) known.set(key, best.value / weight);
    return best.value;
  };
  const value = solve(listStarts(game));
  const policy: BehaviorPolicy = ({ observation, legalActions }) => {
    const action = actions.get(observation) ?? legalActions[0];
    return legalActions.map((legal) => (legal === action ? 1 : 0));
  };
  return { value, policy };
}

/**
 * Computes how much both seats together win by best responses: 0 for an equilibrium of a zero-sum
 * game.
 */
export function computeNashConv<Position extends JsonValue>(
  game: RulesGame<Position>,
  policies: readonly BehaviorPolicy[],
): number {
  const { returns } = computeGameValue(game, policies);
  return [0, 1].reduce(
    (sum, seat) => sum + computeBestResponse(game, policies[1 - seat], seat).value - returns[seat],
    0,
  );
}

/** Returns a function for the value of a position to the first seat under best play of both. */
export function createMinimax<Position extends JsonValue>(game: RulesGame<Position>): (position: Position) => number {
  const starts = game.isPerfectInformation ? game.listStarts() : undefined;
  if (starts === undefined)
    throw invalidArgument(
      `${game.constructor.name} has no minimax player: it hides cards, draws lots or is too large.`,
    );
  checkPositions(game, starts);
  const known = new Map<string, number>();
  const evaluate = (position: Position): number => {
    const key = getKey(position);
    const found = known.get(key);
    if (found !== undefined) return found;
    const seat = game.getSeat(position);
    const children = () => game.listActions(position).map((action) => evaluate(game.next(position, action)));
    const value =
      seat === undefined
        ? game.getReturns(position)[0]
        : seat === 0
          ? Math.max(...children())
          : Math.min(...children());
    known.set(key, value);
    return value;
  };
  return evaluate;
}

/**
 * Lists what the players can know when they are to move, once each. @throws INVALID_ARGUMENT for a
 * game that cannot be enumerated
 */
export function listInformation<Position extends JsonValue>(game: RulesGame<Position>): readonly Information[] {
  const found = new Map<string, Information>();
  visitPositions(game, (position, seat) => {
    const information = inform(game, position, seat);
    found.set(informationKey(information), information);
  });
  return [...found.values()];
}

/** Identifies what a player knows. */
export const informationKey = ({ seat, observation }: Pick<Information, "seat" | "observation">): string =>
  `${seat} ${observation}`;

/**
 * Plays a best action, equally good ones alike. @throws INVALID_ARGUMENT for a game without minimax
 */
export function createMinimaxPolicy<Position extends JsonValue>(game: RulesGame<Position>): BehaviorPolicy {
  const evaluate = createMinimax(game);
  const known = new Map<string, readonly number[]>();
  visitPositions(game, (position, seat) => {
    const children = game.listActions(position).map((action) => game.next(position, action));
    const values = children.map((child) => evaluate(child) * (seat === 0 ? 1 : -1));
    const best = Math.max(...values);
    const count = values.filter((value) => value === best).length;
    known.set(
      informationKey(inform(game, position, seat)),
      values.map((value) => (value === best ? 1 / count : 0)),
    );
  });
  return (information) => known.get(informationKey(information))!;
}

/** How often a policy plays a best move. */
export interface BestMoves {
  /** Situations that play can reach in which some moves are worse than others. */
  readonly situations: number;
  /** Mean probability of the best moves in them; 1 for perfect play. */
  readonly probability: number;
}

/**
 * Computes how often a policy plays a move of minimax, whether its own moves lead to the situation
 * or not. @throws INVALID_ARGUMENT for a game without minimax
 */
export function computeBestMoves<Position extends JsonValue>(
  game: RulesGame<Position>,
  policy: BehaviorPolicy,
  minimax: BehaviorPolicy = createMinimaxPolicy(game),
): BestMoves {
  const masses = listInformation(game).flatMap((information) => {
    const best = minimax(information);
    if (!best.includes(0)) return [];
    return choose(policy, information).reduce((sum, probability, i) => sum + (best[i] > 0 ? probability : 0), 0);
  });
  return { situations: masses.length, probability: masses.length === 0 ? 1 : mean(masses) };
}

/** Calls a function with each position in which a seat is to move, once. */
function visitPositions<Position extends JsonValue>(
  game: RulesGame<Position>,
  visit: (position: Position, seat: number) => void,
): void {
  const seen = new Set<string>();
  const follow = (position: Position) => {
    const seat = game.getSeat(position);
    const key = getKey(position);
    if (seat === undefined || seen.has(key)) return;
    seen.add(key);
    visit(position, seat);
    for (const action of game.listActions(position)) follow(game.next(position, action));
  };
  for (const { position } of listStarts(game)) follow(position);
}
