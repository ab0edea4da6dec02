import { applyDefaults } from "../env-options.js";
import { Box, Discrete } from "../spaces/index.js";
import type { Info } from "../info.js";
import type { TextInterface } from "../text-interface.js";
import { findLastNamedAction } from "../text-parsing.js";
import { TaskEnv, type TaskStep } from "./task-env.js";
import type { Registration } from "../registry/env-registry.js";

const SIZE = 4;
const CELLS = SIZE * SIZE;
/** Exponent of the largest possible tile, 2^17. */
const MAX_EXPONENT = 17;
const MOVES = ["up", "right", "down", "left"];
const FOUR_PROBABILITY = 0.1;

/** Exponents of the tiles in row-major order; 0 for an empty cell. */
type Board = readonly number[];
type BoardState = { readonly board: Board };

/**
 * Slide tiles to merge equal ones (2048, Cirulli 2014). Observation: each cell's exponent of two, 0
 * when empty. Actions: up, right, down, left; a move without effect leaves the state unchanged.
 * Reward: the sum of merged tiles.
 */
export class TwentyFortyEightEnv extends TaskEnv<Uint8Array, number, BoardState> {
  override readonly observationSpace = new Box(0, MAX_EXPONENT, { shape: [SIZE, SIZE], dtype: "uint8" });
  override readonly actionSpace = new Discrete(MOVES.length);
  override readonly text = twentyFortyEightText;

  constructor(options: object = {}) {
    super();
    applyDefaults("2048", options, {});
  }

  protected override start(): BoardState {
    const empty = Array.from({ length: CELLS }, () => 0);
    return { board: this.addTile(this.addTile(empty)) };
  }

  protected override observe({ board }: BoardState): Uint8Array {
    return Uint8Array.from(board);
  }

  protected override describe({ board }: BoardState): Info {
    return { highestTile: 2 ** Math.max(...board) };
  }

  protected override advance({ board }: BoardState, action: number): TaskStep<BoardState> {
    const { board: slid, merged } = slideTiles(board, action);
    if (slid.every((tile, cell) => tile === board[cell])) return { state: { board }, reward: 0, terminated: false };
    const next = this.addTile(slid);
    return { state: { board: next }, reward: merged, terminated: listLegalMoves(next).length === 0 };
  }

  /** Adds a 2, or occasionally a 4, in an empty cell. */
  private addTile(board: Board): Board {
    const empty = board.flatMap((tile, cell) => (tile === 0 ? [cell] : []));
    const cell = this.random.choice(empty);
    return board.with(cell, this.random.random() < FOUR_PROBABILITY ? 2 : 1);
  }
}

/** Returns the board after a move, without a new tile, and the sum of merged tiles. */
export function slideTiles(board: Board, action: number): { board: Board; merged: number } {
  const next = Array.from({ length: CELLS }, () => 0);
  let merged = 0;
  for (let line = 0; line < SIZE; line++) {
    const cells = listLineCells(line, action);
    const tiles = cells.map((cell) => board[cell]).filter((tile) => tile > 0);
    for (let from = 0, to = 0; from < tiles.length; from++, to++) {
      const isPair = tiles[from] === tiles[from + 1];
      next[cells[to]] = isPair ? tiles[from] + 1 : tiles[from];
      if (isPair) merged += 2 ** (tiles[from++] + 1);
    }
  }
  return { board: next, merged };
}

/** Lists the moves that change the board. */
export function listLegalMoves(board: Board): number[] {
  return MOVES.flatMap((_, action) =>
    slideTiles(board, action).board.some((tile, cell) => tile !== board[cell]) ? [action] : [],
  );
}

/** Lists the cells of a row or column, starting at the end that tiles slide to. */
function listLineCells(line: number, action: number): number[] {
  const along = Array.from({ length: SIZE }, (_, i) => (action === 0 || action === 3 ? i : SIZE - 1 - i));
  return along.map((i) => (action % 2 === 0 ? i * SIZE + line : line * SIZE + i));
}

const twentyFortyEightText: TextInterface<Uint8Array, number> = {
  systemPrompt:
    "Play 2048: tiles slide up, right, down or left, and equal tiles that meet merge into their sum. Make large tiles and keep room on the board. Answer up, right, down or left.",
  formatObservation: (board) => {
    return Array.from({ length: SIZE }, (_, row) =>
      Array.from(board.subarray(row * SIZE, row * SIZE + SIZE), (tile) => (tile === 0 ? "." : String(2 ** tile)))
        .map((tile) => tile.padStart(5))
        .join(""),
    ).join("\n");
  },
  parseAction: (completion) => findLastNamedAction(completion, MOVES),
  formatAction: (action) => MOVES[action],
  choices: (board) => listLegalMoves(Array.from(board)).map((move) => MOVES[move]),
};

export const twentyFortyEightEnvs: readonly Registration[] = [
  {
    id: "TwentyFortyEight-v0",
    entryPoint: (options) => new TwentyFortyEightEnv(options),
    maxEpisodeSteps: 10_000,
    summary: "merge tiles",
    knownReturns: { random: 1111, best: 600_000, basis: "page" },
  },
];
