import type { HouseContents } from "./populate-house.js";
import type { QuestStep } from "./quest-plan.js";

/** Detail of the objective: every step, or only the last. */
export type GoalDetail = "brief" | "detailed";

/** Returns the quest as commands. */
export function listCommands(house: HouseContents): string[] {
  return house.plan.steps.map((step) => formatStep(step, house).command);
}

export function describeQuest(house: HouseContents, goal: GoalDetail): string {
  const steps = house.plan.steps.map((step) => formatStep(step, house).sentence);
  const last = steps[steps.length - 1];
  if (goal === "brief" || steps.length === 1) return `Your task: ${last}.`;
  const others = steps.slice(0, -1).map((step, i) => `${i === 0 ? "First" : "Then"} ${step}.`);
  return `Here is what there is to do. ${others.join(" ")} Finally ${last}, and you are done.`;
}

function formatStep(step: QuestStep, house: HouseContents): { command: string; sentence: string } {
  if (step.verb === "go") {
    const command = `go ${step.direction}`;
    return { command, sentence: `${command} into the ${house.getName(step.to)}` };
  }
  const { verb, preposition } = step;
  const object = house.getName(step.object);
  const other = step.other === undefined ? undefined : house.getName(step.other);
  const command = `${verb} ${object}${other === undefined ? "" : ` ${preposition} ${other}`}`;
  const place = other ?? (verb === "take" ? "floor" : undefined);
  const sentence = `${verb === "insert" ? "put" : verb} the ${object}${place === undefined ? "" : ` ${preposition} the ${place}`}`;
  return { command, sentence };
}
