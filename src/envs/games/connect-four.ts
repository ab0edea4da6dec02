import { Discrete } from "../spaces/index.js";
import { createGameText, RulesGame } from "./rules-game.js";

const [ROWS, COLUMNS] = [6, 7];
const STEPS = [
  [1, 0],
  [0, 1],
  [1, 1],
  [1, -1],
] as const;
const NAMES = Array.from({ length: COLUMNS }, (_, i) => String(i + 1));

/** The rows from the top, a character for each cell: X, O or a point. */
type Board = readonly string[];

/**
 * Connect four: the first seat is X. Actions: the columns, named 1 to 7. Win 1, loss -1, draw 0.
 */
export class ConnectFour extends RulesGame<Board> {
  override readonly actionSpace = new Discrete(COLUMNS);
  override get isPerfectInformation(): boolean {
    return true;
  }
  override readonly text = createGameText(
    "Connect four: drop discs into columns 1 to 7 and get four in a row, column or diagonal. Answer the number of a column.",
    NAMES,
  );

  protected override start(): Board {
    return Array.from({ length: ROWS }, () => ".".repeat(COLUMNS));
  }

  override getSeat(board: Board): number | undefined {
    const cells = board.join("");
    if (!cells.includes(".") || findWinner(board) !== undefined) return undefined;
    return cells.replaceAll(".", "").length % 2;
  }

  override listActions(board: Board): number[] {
    return Array.from(board[0]).flatMap((cell, column) => (cell === "." ? [column] : []));
  }

  override next(board: Board, column: number): Board {
    const row = board.findLastIndex((line) => line[column] === ".");
    const line = board[row];
    return board.with(row, line.slice(0, column) + "XO"[this.getSeat(board)!] + line.slice(column + 1));
  }

  override getReturns(board: Board): readonly number[] {
    const winner = findWinner(board);
    return winner === undefined ? [0, 0] : winner === "X" ? [1, -1] : [-1, 1];
  }

  override observe(board: Board, seat: number): string {
    return `You are ${"XO"[seat]}.\n${this.draw(board)}`;
  }

  protected override draw(board: Board): string {
    return board.map((line) => Array.from(line).join(" ")).join("\n");
  }
}

function findWinner(board: Board): string | undefined {
  for (let row = 0; row < ROWS; row++)
    for (let column = 0; column < COLUMNS; column++) {
      const disc = board[row][column];
      if (disc === ".") continue;
      const isLine = ([down, right]: (typeof STEPS)[number]) =>
        [1, 2, 3].every((i) => board[row + i * down]?.[column + i * right] === disc);
      if (STEPS.some(isLine)) return disc;
    }
  return undefined;
}
