import type { HouseContents } from "./populate-house.js";
import type { QuestStep } from "./quest-plan.js";

/** Detail of the objective: every step, or only the last. */
export type GoalDetail = "brief" | "detailed";

/** Returns the quest as commands. */
export function listCommands(house: HouseContents): string[] {
  return house.plan.steps.map((step) => formatCommand(step, house));
}

/** Describes the quest. */
export function describeQuest(house: HouseContents, goal: GoalDetail): string {
  const steps = house.plan.steps.map((step) => formatSentence(step, house));
  const last = steps[steps.length - 1];
  if (goal === "brief" || steps.length === 1) return `Your task: ${last}.`;
  const others = steps.slice(0, -1).map((step, i) => `${i === 0 ? "First" : "Then"} ${step}.`);
  return `Here is what there is to do. ${others.join(" ")} Finally ${last}, and you are done.`;
}

function formatCommand(step: QuestStep, house: HouseContents): string {
  switch (step.verb) {
    case "go":
      return `go ${step.direction}`;
    case "take":
      return `take ${house.getName(step.object)}${step.from === undefined ? "" : ` from ${house.getName(step.from)}`}`;
    case "eat":
      return `eat ${house.getName(step.object)}`;
    case "put":
      return `put ${house.getName(step.object)} on ${house.getName(step.into)}`;
    case "insert":
      return `insert ${house.getName(step.object)} into ${house.getName(step.into)}`;
    case "open":
      return `open ${house.getName(step.target)}`;
    case "unlock":
      return `unlock ${house.getName(step.target)} with ${house.getName(step.key)}`;
  }
}

function formatSentence(step: QuestStep, house: HouseContents): string {
  switch (step.verb) {
    case "go":
      return `go ${step.direction} into the ${house.getName(step.to)}`;
    case "take": {
      const from = step.from === undefined ? "floor" : house.getName(step.from);
      return `take the ${house.getName(step.object)} from the ${from}`;
    }
    case "eat":
      return `eat the ${house.getName(step.object)}`;
    case "put":
      return `put the ${house.getName(step.object)} on the ${house.getName(step.into)}`;
    case "insert":
      return `put the ${house.getName(step.object)} into the ${house.getName(step.into)}`;
    case "open":
      return `open the ${house.getName(step.target)}`;
    case "unlock":
      return `unlock the ${house.getName(step.target)} with the ${house.getName(step.key)}`;
  }
}
