/** Info entries of a game, with TextWorld's names. */
export const INFO_NAMES = [
  "description",
  "inventory",
  "location",
  "score",
  "moves",
  "won",
  "lost",
  "admissibleCommands",
  "policyCommands",
  "intermediateReward",
  "facts",
  "lastAction",
  "lastCommand",
  "objective",
  "maxScore",
  "entities",
  "typedEntities",
  "verbs",
  "commandTemplates",
  "possibleAdmissibleCommands",
  "winFacts",
  "failFacts",
  "walkthrough",
] as const;

/** Name of an info that TextWorld can request. */
export type InfoName = (typeof INFO_NAMES)[number];

/** Requested info entries; a game computes no others. */
export type RequestedInfos = ReadonlySet<InfoName>;

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
