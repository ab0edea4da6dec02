import type { TextForm } from "../text-form.js";
import { lastNamedAction } from "../text-parsing.js";

const CHOICES = ["left", "down", "right", "up"];
const NEIGHBOURS = [
  ["Left", 0, -1],
  ["down", 1, 0],
  ["right", 0, 1],
  ["up", -1, 0],
] as const;
const TILES: Readonly<Record<string, string>> = { S: "ice", F: "ice", H: "hole", G: "goal" };

/** Where the player stands and what lies around; rows and columns are counted from 0. */
export function frozenLakeText(desc: readonly string[], isSlippery: boolean): TextForm<number, number> {
  const columns = desc[0].length;
  const ice = isSlippery ? " The ice is slippery: a move may go to either side instead." : "";
  return {
    systemPrompt: `Cross the frozen lake to the goal and avoid the holes.${ice} Answer left, down, right or up.`,
    formatObservation: (state) => {
      const [row, column] = [Math.floor(state / columns), state % columns];
      const around = NEIGHBOURS.map(([name, down, right]) => {
        return `${name} ${TILES[desc[row + down]?.[column + right]] ?? "edge"}`;
      });
      return `You are at row ${row}, column ${column}. ${around.join(", ")}.`;
    },
    parseAction: (reply) => lastNamedAction(reply, CHOICES),
    formatAction: (action) => CHOICES[action],
    choices: CHOICES,
  };
}
