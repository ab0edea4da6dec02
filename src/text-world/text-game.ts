import type { TextWorldGame } from "./game.js";
import type { GameEvent } from "./progress/quest-progress.js";

/** Info entries of a game's state. */
const STATE_INFOS = ["description", "inventory", "score", "moves", "won", "lost", "lastCommand"] as const;

/** Info entries that follow the game's rules. */
export const TRACKED_INFOS = [
  "location",
  "admissibleCommands",
  "policyCommands",
  "intermediateReward",
  "facts",
  "lastAction",
] as const;

const describeEvent = (game: TextWorldGame, { condition }: GameEvent) =>
  condition.preconditions.map((fact) => game.describeFact(fact));

/** Info entries that never change. */
const STATIC_INFOS = {
  objective: (game: TextWorldGame) => game.objective,
  maxScore: (game: TextWorldGame) => game.maxScore,
  entities: (game: TextWorldGame) => game.entities,
  typedEntities: (game: TextWorldGame) => game.typedEntities,
  verbs: (game: TextWorldGame) => game.verbs,
  commandTemplates: (game: TextWorldGame) => game.commandTemplates,
  possibleAdmissibleCommands: (game: TextWorldGame) => game.possibleAdmissibleCommands,
  winFacts: (game: TextWorldGame) =>
    game.quests.map((quest) => quest.winEvents.map((event) => describeEvent(game, event))),
  failFacts: (game: TextWorldGame) =>
    game.quests.map((quest) => quest.failEvents.map((event) => describeEvent(game, event))),
  walkthrough: (game: TextWorldGame) => game.walkthrough,
};

/** Name of an info that TextWorld can request. */
export type InfoName = (typeof STATE_INFOS | typeof TRACKED_INFOS)[number] | keyof typeof STATIC_INFOS;

/** Info entries of a game, with TextWorld's names. */
export const INFO_NAMES: readonly InfoName[] = [
  ...STATE_INFOS,
  ...TRACKED_INFOS,
  ...(Object.keys(STATIC_INFOS) as (keyof typeof STATIC_INFOS)[]),
];

/** Requested info entries; a game computes no others. */
export type RequestedInfos = ReadonlySet<InfoName>;

/** Returns the requested info entries that never change. */
export function getStaticInfos(game: TextWorldGame, infos: RequestedInfos): Partial<Record<InfoName, unknown>> {
  const values: Partial<Record<InfoName, (game: TextWorldGame) => unknown>> = STATIC_INFOS;
  return Object.fromEntries([...infos].flatMap((name) => (values[name] ? [[name, values[name](game)]] : [])));
}

/** State of a game after a command. Entries that were not requested are undefined. */
export interface GameState {
  /** Output of the game. */
  readonly feedback: string;
  /** Points so far. */
  readonly score: number;
  /** Number of effective commands so far. */
  readonly moves: number;
  readonly won: boolean;
  readonly lost: boolean;
  /** Whether the game has ended: won, lost, or quit. */
  readonly isOver: boolean;
  readonly lastCommand: string | undefined;
  /** Output of `look`. */
  readonly description?: string;
  /** Output of `inventory`. */
  readonly inventory?: string;
  /** Name of the player's room. */
  readonly location?: string;
  /** Commands that have an effect now, in alphabetical order. */
  readonly admissibleCommands?: readonly string[];
  /** Commands that win the game from here; empty when none are known. */
  readonly policyCommands?: readonly string[];
  /** 1 for a command that made progress or won, -1 for a regression or a loss, otherwise 0. */
  readonly intermediateReward?: number;
  /** Facts of the world, in TextWorld's notation and alphabetical order. */
  readonly facts?: readonly string[];
  /** Last action, in TextWorld's notation; null when it matches no rule. */
  readonly lastAction?: string | null;
}

/** A running text game, from a story file or generated. */
export interface TextGame {
  /** Starts or restarts the game. */
  start(): GameState;
  /** Sends a command. */
  send(command: string): GameState;
}
