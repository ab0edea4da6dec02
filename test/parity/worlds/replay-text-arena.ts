import { ConnectFour } from "../../../src/envs/games/connect-four.js";
import { KuhnPoker } from "../../../src/envs/games/kuhn-poker.js";
import { Nim } from "../../../src/envs/games/nim.js";
import { Pig } from "../../../src/envs/games/pig.js";
import type { RulesGame } from "../../../src/envs/games/rules-game.js";
import { SimpleNegotiation } from "../../../src/envs/games/simple-negotiation.js";
import { TicTacToe } from "../../../src/envs/games/tic-tac-toe.js";
import type { Comparison } from "./comparison.js";

type Views = readonly (readonly [keep: number, rest: string])[];

/** One game, move by move. */
export interface TextArenaCase {
  readonly game: string;
  readonly seed: number;
  readonly players: number[];
  readonly moves: string[];
  /** What the player to move is shown. */
  readonly seen: Views;
  /** What the "-train" variant shows; may be empty. */
  readonly board: Views;
  readonly rewards: number[];
  readonly info: { readonly invalid_move: boolean; readonly turn_count: number }[];
}

/** How a game's recording is played and read. */
interface Recorded {
  readonly game: RulesGame<never, never>;
  /** Reads an action from a move; undefined for none. */
  readonly parse: (move: string) => unknown;
  /** The facts that a view tells. */
  readonly readFacts: (view: string) => unknown;
  /** The same facts of a position. */
  readonly listFacts: (position: never, seat: number) => unknown;
  /**
   * Whom TextArena counts a legal move for, by the positions after and before it: where the turn
   * was passed first, the next player; undefined if it counts for neither.
   */
  readonly findCounted?: (position: never, player: number, before: never) => number | undefined;
}

const last = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].at(-1)?.slice(1) ?? [];
const ROUNDS: Readonly<Record<string, number>> = { "": 3, short: 5, medium: 9, long: 15, "extra-long": 25 };
const NEGOTIATION_TURNS: Readonly<Record<string, number>> = { "": 10, short: 6, long: 30 };
const PILES: Readonly<Record<string, number[]>> = { "": [3, 4, 5], medium: [4, 2, 3, 7], large: [5, 7, 9, 11, 2] };
/** Goal, and the action after which a turn that ends is the last. */
const PIG: Readonly<Record<string, [goal: number, maxActions: number]>> = {
  "": [100, 101],
  short: [50, 26],
  "50": [50, 51],
};

function createTicTacToe(): Recorded {
  const game = new TicTacToe({ illegalMoves: "retry" });
  return {
    game: game as unknown as RulesGame<never, never>,
    parse: (move) => {
      const [digits] = /\[\s*(\d+)\s*\]/.exec(move)?.slice(1) ?? [];
      return digits === undefined ? undefined : Number(digits);
    },
    // The first player is O there.
    readFacts: (view) => {
      const rows = view.slice(view.lastIndexOf("Current Board:")).match(/^ \S \| \S \| \S $/gm) ?? [];
      const marks: Readonly<Record<string, string>> = { O: "X", X: "O" };
      return Array.from(rows.join("").replaceAll(/[ |]/g, ""), (mark) => marks[mark] ?? ".").join("");
    },
    listFacts: (board: string) => board,
  };
}

function createConnectFour(): Recorded {
  const game = new ConnectFour({ illegalMoves: "retry" });
  return {
    game: game as unknown as RulesGame<never, never>,
    parse: (move) => {
      const [column] = /.*\[(?:col\s*)?(\d+)\].*/i.exec(move)?.slice(1) ?? [];
      return column === undefined ? undefined : Number(column);
    },
    readFacts: (view) => view.match(/^[.XO](?: [.XO]){6}$/gm)?.slice(-6),
    listFacts: (board: readonly string[]) => board.map((row) => Array.from(row).join(" ")),
  };
}

function createNim(variant: string): Recorded {
  const game = new Nim({ piles: PILES[variant], illegalMoves: "retry" });
  return {
    game: game as unknown as RulesGame<never, never>,
    parse: (move) => {
      const [pile, count] = /\[\s*(\d+)\s+(\d+)\s*\]/.exec(move)?.slice(1).map(Number) ?? [];
      return pile === undefined ? undefined : game.getAction(pile, count);
    },
    readFacts: (view) =>
      [...view.slice(view.lastIndexOf("Current Pile:")).matchAll(/pile \d+: (\d+)/g)].map(([, count]) => Number(count)),
    listFacts: ({ piles }: { piles: number[] }) => piles,
  };
}

function createPig(variant: string): Recorded {
  const [goal, maxActions] = PIG[variant];
  const game = new Pig({ goal, maxActions, illegalMoves: "retry" });
  return {
    game: game as unknown as RulesGame<never, never>,
    parse: (move) => {
      const [name] = /\[(roll|hold)\]/i.exec(move)?.slice(1) ?? [];
      return name === undefined ? undefined : ["roll", "hold"].indexOf(name.toLowerCase());
    },
    readFacts: (view) =>
      [...last(view, /Total Scores: Player 0: '(\d+)'; Player 1: '(\d+)'/g), ...last(view, /turn total is (\d+)/g)].map(
        Number,
      ),
    listFacts: ({ scores, turnTotal }: { scores: number[]; turnTotal: number }) => [...scores, turnTotal],
    findCounted: (position: never, player) => game.getSeat(position) ?? player,
  };
}

function createKuhnPoker(variant: string): Recorded {
  const game = new KuhnPoker({ rules: "text-arena", rounds: ROUNDS[variant], illegalMoves: "retry" });
  const names = ["check", "bet", "fold", "call"];
  type Position = Parameters<typeof game.next>[0];
  return {
    game: game as unknown as RulesGame<never, never>,
    parse: (move) => {
      const [name] = /\[(check|bet|fold|call)\]/i.exec(move)?.slice(1) ?? [];
      return name === undefined ? undefined : names.indexOf(name.toLowerCase());
    },
    readFacts: (view) => [
      last(view, /Your card is: '(\w)'/g),
      last(view, /### Starting round (\d+)/g).map(Number),
      (last(view, /available actions are: (.*)/g)[0] ?? "").match(/\w+/g),
      last(
        `Current scores: Player 0: '0'; Player 1: '0'\n${view}`,
        /scores: Player 0: '(-?\d+)'; Player 1: '(-?\d+)'/g,
      ).map(Number),
    ],
    listFacts: (position: Position, seat) => [
      ["JQK"[position.deck[seat]]],
      [position.round + 1],
      // "fold" is named before "call".
      game.listActions(position).map((action) => names[action]),
      [...position.chips],
    ],
    // The opener of the next hand, also after the last one; the second player opens the first.
    findCounted: ({ history, round }: Position, player) => (history === "" ? (round + 1) % 2 : player),
  };
}

function createNegotiation(variant: string): Recorded {
  const turns = NEGOTIATION_TURNS[variant];
  const game = new SimpleNegotiation({ rules: "text-arena", turns, illegalMoves: "retry" });
  const names = ["Wheat", "Wood", "Sheep", "Brick", "Ore"];
  const readAmounts = (text: string) => names.map((name) => Number(new RegExp(`(\\d+) ${name}`).exec(text)?.[1] ?? 0));
  type Position = ReturnType<typeof game.next>;
  return {
    game: game as unknown as RulesGame<never, never>,
    parse: (move) => move,
    readFacts: (view) => {
      const table = [...view.matchAll(/\] +Qty: (\d+) +Value: (\d+)/g)];
      // An offer that is open: the last one, unless it was accepted since.
      const [event] = last(view, /(made the following offer.*|accepted the trade offer)/g);
      const [author] = last(view, /Player (\d) made the following offer/g);
      const isOpen = event?.startsWith("made") ?? false;
      return {
        stock: table.map(([, count]) => Number(count)),
        values: table.map(([, , value]) => Number(value)),
        offer: isOpen ? [Number(author), ...event.split(" -> ").map((side) => readAmounts(side))] : undefined,
      };
    },
    listFacts: ({ firstStocks, values, offer }: Position, seat) => ({
      stock: firstStocks[seat],
      values: values[seat],
      offer: offer === null ? undefined : [offer.author, offer.gives, offer.takes],
    }),
    findCounted: ({ counts }: Position, player, before: Position) =>
      counts[player] > before.counts[player] ? player : undefined,
  };
}

/** Makes a game by TextArena's name; undefined for one that llamagym does not have. */
function createRecorded(name: string): Recorded | undefined {
  const [game, variant = ""] = name.split(/-v0-?/);
  switch (game) {
    case "TicTacToe":
      return createTicTacToe();
    case "KuhnPoker":
      return createKuhnPoker(variant);
    case "Nim":
      return createNim(variant);
    case "ConnectFour":
      return createConnectFour();
    case "PigDice":
      return createPig(variant);
    case "SimpleNegotiation":
      return createNegotiation(variant);
    default:
      return undefined;
  }
}

export const isTextArenaSupported = ({ game }: TextArenaCase): boolean => createRecorded(game) !== undefined;

/** Puts together the texts, each of which begins like the last one of the same player. */
function restoreViews(players: readonly number[], views: Views): string[] {
  const lastViews = new Map<number, string>();
  return views.map(([keep, rest], i) => {
    const view = (lastViews.get(players[i]) ?? "").slice(0, keep) + rest;
    lastViews.set(players[i], view);
    return view;
  });
}

/** Plays the moves of a case and compares who moves, what the views tell, and the outcome. */
export function* replayTextArena({
  game: name,
  seed,
  players,
  moves,
  seen,
  board,
  rewards,
  info,
}: TextArenaCase): Generator<Comparison> {
  const { game, parse, readFacts, listFacts, findCounted = (_, mover) => mover } = createRecorded(name)!;
  const [seenTexts, boardTexts] = [seen, board].map((views) => restoreViews(players, views));
  const counts = [0, 0];
  let wasWarned = false;
  let result = game.reset({ seed });
  for (const [i, move] of moves.entries()) {
    const player = players[i];
    yield { where: `move ${i} player`, actual: result.seat, expected: player };
    const facts = listFacts(game.currentPosition, player);
    yield { where: `move ${i} view`, actual: facts, expected: readFacts(seenTexts[i]) };
    if (board.length > 0) yield { where: `move ${i} board`, actual: facts, expected: readFacts(boardTexts[i]) };
    const before = game.currentPosition;
    result = game.step(parse(/[[\]]/.test(move) ? move : `[${move}]`) as never);
    const isIllegal = result.info.illegal !== undefined;
    // Of illegal moves, only one that loses after a warning is counted.
    const counted = isIllegal ? (wasWarned ? player : undefined) : findCounted(game.currentPosition, player, before);
    if (counted !== undefined) counts[counted]++;
    wasWarned = isIllegal;
  }
  yield { where: "end", actual: [result.seat, [...result.rewards]], expected: [undefined, rewards] };
  yield {
    where: "end, illegal moves",
    actual: [0, 1].map((seat) => result.info.illegal === seat),
    expected: info.map((of) => of.invalid_move),
  };
  yield { where: "end, counts", actual: counts, expected: info.map((of) => of.turn_count) };
}
