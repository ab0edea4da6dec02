import type { TextInterface } from "../text-interface.js";
import { findLastNamedAction } from "../text-parsing.js";

const CHOICES = ["left", "down", "right", "up"];
const NEIGHBORS = [
  ["Left", 0, -1],
  ["down", 1, 0],
  ["right", 0, 1],
  ["up", -1, 0],
] as const;
const TILE_NAMES: Readonly<Record<string, string>> = { S: "ice", F: "ice", H: "hole", G: "goal" };

/** Describes the position and the adjacent tiles; rows and columns count from 0. */
export function createFrozenLakeText(desc: readonly string[], isSlippery: boolean): TextInterface<number, number> {
  const columns = desc[0].length;
  const slipperyNote = isSlippery ? " The ice is slippery: a move may go to either side instead." : "";
  return {
    systemPrompt: `Cross the frozen lake to the goal and avoid the holes.${slipperyNote} Answer left, down, right or up.`,
    formatObservation: (state) => {
      const [row, column] = [Math.floor(state / columns), state % columns];
      const neighbors = NEIGHBORS.map(([name, down, right]) => {
        return `${name} ${TILE_NAMES[desc[row + down]?.[column + right]] ?? "edge"}`;
      });
      return `You are at row ${row}, column ${column}. ${neighbors.join(", ")}.`;
    },
    parseAction: (completion) => findLastNamedAction(completion, CHOICES),
    formatAction: (action) => CHOICES[action],
    choices: CHOICES,
  };
}
