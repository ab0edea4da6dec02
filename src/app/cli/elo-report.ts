import type { EloLadder } from "../../rl/train/index.js";
import { formatTable } from "./display/format-table.js";

/** Formats ratings as a table, the best player first. */
export function formatEloReport({ games, players }: EloLadder): string {
  const rows = players.map(({ name, elo, score }) => [name, elo.toFixed(0), score.toFixed(4)]);
  const source =
    games === 0
      ? "Scores are exact: computed from the probabilities in all situations."
      : `Each pair played ${games} games, in both seats alike.`;
  return [
    formatTable([["PLAYER", "ELO", "SCORE"], ...rows], [1, 2]),
    "",
    `Elo: 400 points are odds of 10 to 1; random play is 0. ${source}`,
  ].join("\n");
}
