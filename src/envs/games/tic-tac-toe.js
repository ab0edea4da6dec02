import { Discrete } from "../spaces/index.js";
import { createGameText, RulesGame } from "./rules-game.js";
const LINES = ["012", "345", "678", "036", "147", "258", "048", "246"].map((line) => Array.from(line, Number));
const NAMES = Array.from({ length: 9 }, (_, i) => String(i + 1));
/** Tic-tac-toe: the first seat is X. Actions: the cells row by row, named 1 to 9. Win 1, loss -1, draw 0. */
export class TicTacToe extends RulesGame {
    actionSpace = new Discrete(9);
    isPerfectInformation = true;
    text = createGameText("Tic-tac-toe: get three in a row. Cells are numbered 1 to 9, row by row. Answer the number of a free cell.", NAMES);
    start() {
        return ".".repeat(9);
    }
    listStarts() {
        return [{ position: this.start(), probability: 1 }];
    }
    getSeat(board) {
        if (findWinner(board) !== undefined || !board.includes("."))
            return undefined;
        return countFree(board) % 2 === 1 ? 0 : 1;
    }
    listActions(board) {
        return Array.from(board).flatMap((cell, i) => (cell === "." ? [i] : []));
    }
    next(board, action) {
        return board.slice(0, action) + "XO"[this.getSeat(board)] + board.slice(action + 1);
    }
    getReturns(board) {
        const winner = findWinner(board);
        return winner === undefined ? [0, 0] : winner === "X" ? [1, -1] : [-1, 1];
    }
    observe(board, seat) {
        return `You are ${"XO"[seat]}.\n${this.draw(board)}`;
    }
    draw(board) {
        return [0, 3, 6].map((i) => Array.from(board.slice(i, i + 3)).join(" ")).join("\n");
    }
}
const countFree = (board) => board.replaceAll(/[XO]/g, "").length;
function findWinner(board) {
    const [first] = LINES.find(([a, b, c]) => board[a] !== "." && board[a] === board[b] && board[a] === board[c]) ?? [];
    return first === undefined ? undefined : board[first];
}
