import { Discrete } from "../spaces/index.js";
import { createGameText, RulesGame } from "./rules-game.js";

/** The nine cells row by row, a character each: X, O or a point. */
type Board = string;

const LINES = ["012", "345", "678", "036", "147", "258", "048", "246"].map((line) => Array.from(line, Number));
const NAMES = Array.from({ length: 9 }, (_, i) => String(i + 1));

/**
 * Tic-tac-toe: the first seat is X. Actions: the cells row by row, named 1 to 9. Win 1, loss -1,
 * draw 0.
 */
export class TicTacToe extends RulesGame<Board> {
  override readonly actionSpace = new Discrete(9);
  override get isPerfectInformation(): boolean {
    return true;
  }
  override readonly text = createGameText(
    "Tic-tac-toe: get three in a row. Cells are numbered 1 to 9, row by row. Answer the number of a free cell.",
    NAMES,
  );

  protected override start(): Board {
    return ".".repeat(9);
  }

  override listStarts(): { position: Board; probability: number }[] {
    return [{ position: this.start(), probability: 1 }];
  }

  override getSeat(board: Board): number | undefined {
    if (findWinner(board) !== undefined || !board.includes(".")) return undefined;
    return countFree(board) % 2 === 1 ? 0 : 1;
  }

  override listActions(board: Board): number[] {
    return Array.from(board).flatMap((cell, i) => (cell === "." ? [i] : []));
  }

  override next(board: Board, action: number): Board {
    return board.slice(0, action) + "XO"[this.getSeat(board)!] + board.slice(action + 1);
  }

  override getReturns(board: Board): readonly number[] {
    const winner = findWinner(board);
    return winner === undefined ? [0, 0] : winner === "X" ? [1, -1] : [-1, 1];
  }

  override observe(board: Board, seat: number): string {
    return `You are ${"XO"[seat]}.\n${this.draw(board)}`;
  }

  protected override draw(board: Board): string {
    return [0, 3, 6].map((i) => Array.from(board.slice(i, i + 3)).join(" ")).join("\n");
  }
}

const countFree = (board: Board) => board.replaceAll(/[XO]/g, "").length;

function findWinner(board: Board): string | undefined {
  const [first] = LINES.find(([a, b, c]) => board[a] !== "." && board[a] === board[b] && board[a] === board[c]) ?? [];
  return first === undefined ? undefined : board[first];
}
