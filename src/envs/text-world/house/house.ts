import { LlamaGymError } from "../../../errors.js";
import { RandomStream } from "../../../tensor/random.js";
import { triggerOf } from "../game-file.js";
import { Game } from "../game.js";
import type { Action } from "../logic/action.js";
import { Facts } from "../logic/facts.js";
import { furnish, type Furnished } from "./furnish.js";
import { drawMap } from "./map.js";
import { drawPlan } from "./plan.js";
import { houseRules } from "./rules.js";
import { commandsOf, describeTask, type Goal } from "./task.js";

/** What a house is to be like. */
export interface HouseOptions {
  /** At most 100. */
  readonly rooms?: number;
  /** Things besides rooms and doors, at least; a quest that needs more of them gets more. At most 100. */
  readonly objects?: number;
  /** How many commands the quest takes. At most 30. */
  readonly questLength?: number;
  /** "detailed" tells each step of the quest, "brief" only the last. */
  readonly goal?: Goal;
}

/** TextWorld's own example: 5 rooms, 10 objects, a quest of 5 commands. */
export const HOUSE_DEFAULTS = { rooms: 5, objects: 10, questLength: 5, goal: "detailed" } as const;

const LIMITS = { rooms: 100, objects: 100, questLength: 30 } as const;
/** Draws that are thrown away, because a shorter way to the goal was left open, come one after another only so often. */
const MAX_DRAWS = 100;

/**
 * Makes a game: a house, and a quest in it whose walkthrough is known and leaves no command out that it could.
 * The same options and seed make the same game.
 */
export function makeHouse(options: HouseOptions, seed: number | bigint): Game {
  const settings = { ...HOUSE_DEFAULTS, ...options };
  for (const name of ["rooms", "objects", "questLength"] as const) checkCount(name, settings[name]);
  if (settings.goal !== "brief" && settings.goal !== "detailed") {
    throw new LlamaGymError("INVALID_ARGUMENT", `goal must be "brief" or "detailed", got ${String(settings.goal)}.`);
  }
  const random = new RandomStream(seed);
  for (let draw = 0; draw < MAX_DRAWS; draw++) {
    const joints = drawMap(settings.rooms, random);
    const plan = drawPlan(settings.rooms, joints, settings.questLength, random);
    if (plan === undefined) continue;
    const game = gameOf(furnish({ ...settings, joints, plan }, random), settings.goal);
    if (game !== undefined) return game;
  }
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `No quest of ${settings.questLength} commands was found for ${settings.rooms} rooms. Ask for more rooms or a shorter quest.`,
  );
}

function checkCount(name: keyof typeof LIMITS, value: number): void {
  if (Number.isInteger(value) && value >= (name === "objects" ? 0 : 1) && value <= LIMITS[name]) return;
  const least = name === "objects" ? 0 : 1;
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `${name} must be an integer from ${least} to ${LIMITS[name]}, got ${value}.`,
  );
}

/** The furnished house as a game; undefined when its quest could be done in fewer commands. */
function gameOf(house: Furnished, goal: Goal): Game | undefined {
  const walkthrough = commandsOf(house);
  const parts = {
    knowledge: houseRules(),
    facts: new Facts(house.facts),
    infos: house.infos,
    metadata: { walkthrough },
    objective: describeTask(house, goal),
  };
  const actions = carryOut(new Game({ ...parts, quests: [] }), walkthrough);
  const last = actions?.at(-1);
  if (actions === undefined || last === undefined) return undefined;
  const quest = {
    description: parts.objective,
    reward: 1,
    optional: false,
    repeatable: false,
    winEvents: [{ actions, condition: triggerOf(last.added) }],
    failEvents: [],
  };
  const game = new Game({ ...parts, quests: [quest] });
  return leadsStraightToTheEnd(game, walkthrough) ? game : undefined;
}

/** The actions that the commands cause from the start; undefined when one of them is not possible. */
function carryOut(game: Game, commands: readonly string[]): Action[] | undefined {
  const progress = game.start();
  const actions: Action[] = [];
  for (const command of commands) {
    const action = progress.validActions.find((candidate) => game.commandsOf([candidate])[0] === command);
    if (action === undefined) return undefined;
    progress.update(action);
    actions.push(action);
  }
  return actions;
}

/** Whether each command of the walkthrough, and nothing less, brings the end one command nearer. */
function leadsStraightToTheEnd(game: Game, walkthrough: readonly string[]): boolean {
  const progress = game.start();
  for (const [done, command] of walkthrough.entries()) {
    if (progress.winningPolicy()?.length !== walkthrough.length - done) return false;
    const action = progress.validActions.find((candidate) => game.commandsOf([candidate])[0] === command);
    if (action === undefined) return false;
    progress.update(action);
  }
  return progress.completed;
}
