import type { BestMoves } from "../../envs/index.js";
import type { ExactEvaluation, ExactEvaluations } from "../../rl/train/index.js";
import { formatTable } from "./display/format-table.js";

/** Formats exact values of a policy in a game as tables: as it samples, and greedy. */
export function formatExactReport({ sampled, greedy }: ExactEvaluations): string {
  const format = (title: string, { outcomes, nashConv, bestMoves }: ExactEvaluation) =>
    [
      formatTable(
        [
          [title, "SEAT", "WIN", "DRAW", "LOSS", "RETURN"],
          ...outcomes.map(({ opponent, seat, win, draw, loss, return: value }) => [
            `against ${opponent}`,
            seat === 0 ? "first" : "second",
            ...[win, draw, loss, value].map((number) => number.toFixed(4)),
          ]),
        ],
        [2, 3, 4, 5],
      ),
      `NashConv ${nashConv.toFixed(4)}: what best responses win in both seats together, more than the policy does.`,
      ...(bestMoves === undefined ? [] : [describeBestMoves(bestMoves)]),
    ].join("\n");
  return [
    format("SAMPLED", sampled),
    "",
    format("GREEDY", greedy),
    "",
    `Computed from the probabilities in ${sampled.informationSets} situations; no game was sampled.`,
  ].join("\n");
}

function describeBestMoves({ situations, probability }: BestMoves): string {
  return `Best moves: ${(100 * probability).toFixed(2)} % in the ${situations} situations in which moves differ in value.`;
}
