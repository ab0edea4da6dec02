import type { Furnished } from "./furnish.js";
import type { Step } from "./plan.js";

/** How much the game's first words tell: every step, or only the last. */
export type Goal = "brief" | "detailed";

/** The quest as commands, first to last. */
export function commandsOf(house: Furnished): string[] {
  return house.plan.steps.map((step) => commandOf(step, house));
}

/** The quest in words. */
export function describeTask(house: Furnished, goal: Goal): string {
  const steps = house.plan.steps.map((step) => sentenceOf(step, house));
  const last = steps[steps.length - 1];
  if (goal === "brief" || steps.length === 1) return `Your task: ${last}.`;
  const others = steps.slice(0, -1).map((step, i) => `${i === 0 ? "First" : "Then"} ${step}.`);
  return `Here is what there is to do. ${others.join(" ")} Finally ${last}, and you are done.`;
}

function commandOf(step: Step, house: Furnished): string {
  switch (step.verb) {
    case "go":
      return `go ${step.direction}`;
    case "take":
      return `take ${house.nameOf(step.object)}${step.from === undefined ? "" : ` from ${house.nameOf(step.from)}`}`;
    case "eat":
      return `eat ${house.nameOf(step.object)}`;
    case "put":
      return `put ${house.nameOf(step.object)} on ${house.nameOf(step.into)}`;
    case "insert":
      return `insert ${house.nameOf(step.object)} into ${house.nameOf(step.into)}`;
    case "open":
      return `open ${house.nameOf(step.what)}`;
    case "unlock":
      return `unlock ${house.nameOf(step.what)} with ${house.nameOf(step.key)}`;
  }
}

function sentenceOf(step: Step, house: Furnished): string {
  switch (step.verb) {
    case "go":
      return `go ${step.direction} into the ${house.nameOf(step.to)}`;
    case "take": {
      const from = step.from === undefined ? "floor" : house.nameOf(step.from);
      return `take the ${house.nameOf(step.object)} from the ${from}`;
    }
    case "eat":
      return `eat the ${house.nameOf(step.object)}`;
    case "put":
      return `put the ${house.nameOf(step.object)} on the ${house.nameOf(step.into)}`;
    case "insert":
      return `put the ${house.nameOf(step.object)} into the ${house.nameOf(step.into)}`;
    case "open":
      return `open the ${house.nameOf(step.what)}`;
    case "unlock":
      return `unlock the ${house.nameOf(step.what)} with the ${house.nameOf(step.key)}`;
  }
}
