import { LlamaGymError } from "../../core/errors.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { createTrigger } from "../parse-game.js";
import { Game } from "../game.js";
import type { Action } from "../logic/action.js";
import { Facts } from "../logic/facts.js";
import { populateHouse, type HouseContents } from "./populate-house.js";
import { generateMap } from "./house-map.js";
import { generateQuestPlan } from "./quest-plan.js";
import { getHouseRules } from "./house-rules.js";
import { listCommands, describeQuest, type GoalDetail } from "./describe-quest.js";

/** Options of a generated house. */
export interface HouseOptions {
  /** At most 100. */
  readonly rooms?: number;
  /** Minimum number of objects other than rooms and doors; quests may add more. At most 100. */
  readonly objects?: number;
  /** Number of commands of the quest. At most 30. */
  readonly questLength?: number;
  /** "detailed" describes each step of the quest, "brief" only the last. */
  readonly goal?: GoalDetail;
}

/** TextWorld's own example: 5 rooms, 10 objects, a quest of 5 commands. */
export const HOUSE_DEFAULTS = { rooms: 5, objects: 10, questLength: 5, goal: "detailed" } as const;

const LIMITS = { rooms: 100, objects: 100, questLength: 30 } as const;
/** Maximum consecutive draws rejected because of a shorter path to the goal. */
const MAX_ATTEMPTS = 100;

/**
 * Generates a game: a house, and a quest with a known walkthrough without unnecessary commands.
 * The same options and seed give the same game.
 */
export function makeHouse(options: HouseOptions, seed: number | bigint): Game {
  const settings = { ...HOUSE_DEFAULTS, ...options };
  for (const name of ["rooms", "objects", "questLength"] as const) checkCount(name, settings[name]);
  if (settings.goal !== "brief" && settings.goal !== "detailed") {
    throw new LlamaGymError("INVALID_ARGUMENT", `goal must be "brief" or "detailed", got ${String(settings.goal)}.`);
  }
  const random = new RandomStream(seed);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const connections = generateMap(settings.rooms, random);
    const plan = generateQuestPlan(settings.rooms, connections, settings.questLength, random);
    if (plan === undefined) continue;
    const game = createGame(populateHouse({ ...settings, connections, plan }, random), settings.goal);
    if (game !== undefined) return game;
  }
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `No quest of ${settings.questLength} commands was found for ${settings.rooms} rooms. Increase \`rooms\` or decrease \`questLength\`.`,
  );
}

function checkCount(name: keyof typeof LIMITS, value: number): void {
  if (Number.isInteger(value) && value >= (name === "objects" ? 0 : 1) && value <= LIMITS[name]) return;
  const minimum = name === "objects" ? 0 : 1;
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `${name} must be an integer from ${minimum} to ${LIMITS[name]}, got ${value}.`,
  );
}

/** The furnished house as a game; undefined when its quest could be done in fewer commands. */
function createGame(house: HouseContents, goal: GoalDetail): Game | undefined {
  const walkthrough = listCommands(house);
  const parts = {
    knowledge: getHouseRules(),
    facts: new Facts(house.facts),
    infos: house.infos,
    metadata: { walkthrough },
    objective: describeQuest(house, goal),
  };
  const actions = runCommands(new Game({ ...parts, quests: [] }), walkthrough);
  const last = actions?.at(-1);
  if (actions === undefined || last === undefined) return undefined;
  const quest = {
    description: parts.objective,
    reward: 1,
    optional: false,
    repeatable: false,
    winEvents: [{ actions, condition: createTrigger(last.added) }],
    failEvents: [],
  };
  const game = new Game({ ...parts, quests: [quest] });
  return isShortestWalkthrough(game, walkthrough) ? game : undefined;
}

/** The actions that the commands cause from the start; undefined when one of them is not possible. */
function runCommands(game: Game, commands: readonly string[]): Action[] | undefined {
  const progress = game.createProgress();
  const actions: Action[] = [];
  for (const command of commands) {
    const action = progress.validActions.find((candidate) => game.formatCommands([candidate])[0] === command);
    if (action === undefined) return undefined;
    progress.update(action);
    actions.push(action);
  }
  return actions;
}

/** Whether each command of the walkthrough, and nothing less, brings the end one command nearer. */
function isShortestWalkthrough(game: Game, walkthrough: readonly string[]): boolean {
  const progress = game.createProgress();
  for (const [doneCount, command] of walkthrough.entries()) {
    if (progress.winningPolicy()?.length !== walkthrough.length - doneCount) return false;
    const action = progress.validActions.find((candidate) => game.formatCommands([candidate])[0] === command);
    if (action === undefined) return false;
    progress.update(action);
  }
  return progress.completed;
}
