import { invalidArgument } from "../../core/errors.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { createTrigger } from "../parse-game.js";
import { TextWorldGame } from "../game.js";
import type { Action } from "../logic/action.js";
import { Facts } from "../logic/facts.js";
import type { GameProgress } from "../progress/game-progress.js";
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

const LIMITS = { rooms: [1, 100], objects: [0, 100], questLength: [1, 30] } as const;
/** Maximum consecutive draws rejected because of a shorter path to the goal. */
const MAX_ATTEMPTS = 100;

/**
 * Generates a game: a house, and a quest with a known walkthrough without unnecessary commands.
 * The same options and seed give the same game.
 */
export function makeHouse(options: HouseOptions, seed: number | bigint): TextWorldGame {
  const settings = { ...HOUSE_DEFAULTS, ...options };
  for (const [name, [minimum, maximum]] of Object.entries(LIMITS)) {
    const value = settings[name as keyof typeof LIMITS];
    if (!Number.isInteger(value) || value < minimum || value > maximum)
      throw invalidArgument(`\`${name}\` must be an integer from ${minimum} to ${maximum}, got ${value}.`);
  }
  if (settings.goal !== "brief" && settings.goal !== "detailed")
    throw invalidArgument(`\`goal\` must be "brief" or "detailed", got ${String(settings.goal)}.`);
  const random = new RandomStream(seed);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const connections = generateMap(settings.rooms, random);
    const plan = generateQuestPlan(settings.rooms, connections, settings.questLength, random);
    if (plan === undefined) continue;
    const game = createGame(populateHouse({ ...settings, connections, plan }, random), settings.goal);
    if (game !== undefined) return game;
  }
  const { questLength, rooms } = settings;
  throw invalidArgument(
    `No quest of ${questLength} commands was found for ${rooms} rooms. Increase \`rooms\` or decrease \`questLength\`.`,
  );
}

/** The furnished house as a game; undefined when its quest could be done in fewer commands. */
function createGame(house: HouseContents, goal: GoalDetail): TextWorldGame | undefined {
  const walkthrough = listCommands(house);
  const parts = {
    knowledge: getHouseRules(),
    facts: new Facts(house.facts),
    infos: house.infos,
    metadata: { walkthrough },
    objective: describeQuest(house, goal),
  };
  const actions = runCommands(new TextWorldGame({ ...parts, quests: [] }), walkthrough);
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
  const game = new TextWorldGame({ ...parts, quests: [quest] });
  return isShortestWalkthrough(game, walkthrough) ? game : undefined;
}

/** Returns the actions that the commands cause; undefined if one of them is impossible. */
function runCommands(game: TextWorldGame, commands: readonly string[]): Action[] | undefined {
  const progress = game.createProgress();
  const actions = commands.map((command) => runCommand(game, progress, command));
  return actions.every((action) => action !== undefined) ? actions : undefined;
}

function runCommand(game: TextWorldGame, progress: GameProgress, command: string): Action | undefined {
  const action = progress.validActions.find((candidate) => game.formatCommands([candidate])[0] === command);
  if (action !== undefined) progress.update(action);
  return action;
}

/**
 * Returns whether each command of the walkthrough, and nothing less, brings the end one command
 * nearer.
 */
function isShortestWalkthrough(game: TextWorldGame, walkthrough: readonly string[]): boolean {
  const progress = game.createProgress();
  const isShortest = walkthrough.every((command, i) => {
    const isNearest = progress.winningPolicy()?.length === walkthrough.length - i;
    return isNearest && runCommand(game, progress, command) !== undefined;
  });
  return isShortest && progress.completed;
}
