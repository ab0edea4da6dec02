import type { TextInterface } from "../text-interface.js";
import { findLastNamedAction } from "../text-parsing.js";
import { CLIFF_COLUMNS, CLIFF_GOAL, CLIFF_ROWS, isCliff } from "./cliff-grid.js";

const CHOICES = ["up", "right", "down", "left"];
const NEIGHBORS = [
  ["Up", -1, 0],
  ["right", 0, 1],
  ["down", 1, 0],
  ["left", 0, -1],
] as const;

function describeTile(row: number, column: number): string {
  if (row < 0 || row >= CLIFF_ROWS || column < 0 || column >= CLIFF_COLUMNS) return "edge";
  const state = row * CLIFF_COLUMNS + column;
  if (isCliff(state)) return "cliff";
  return state === CLIFF_GOAL ? "goal" : "ground";
}

/** Describes the position and the adjacent tiles; rows and columns count from 0. */
export function createCliffWalkingText(isSlippery: boolean): TextInterface<number, number> {
  const slipperyNote = isSlippery ? " The ground is slippery: a move may go to either side instead." : "";
  return {
    systemPrompt: `Walk to the goal at row ${CLIFF_ROWS - 1}, column ${CLIFF_COLUMNS - 1} in few steps. Stepping into the cliff costs 100 and sends you back to the start.${slipperyNote} Answer up, right, down or left.`,
    formatObservation: (state) => {
      const [row, column] = [Math.floor(state / CLIFF_COLUMNS), state % CLIFF_COLUMNS];
      const neighbors = NEIGHBORS.map(([name, down, right]) => `${name} ${describeTile(row + down, column + right)}`);
      return `You are at row ${row}, column ${column}. ${neighbors.join(", ")}.`;
    },
    parseAction: (completion) => findLastNamedAction(completion, CHOICES),
    formatAction: (action) => CHOICES[action],
    choices: CHOICES,
  };
}
