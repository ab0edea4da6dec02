/** What an agent can be told of a game besides its feedback. Each is TextWorld's information of the same name. */
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

export type InfoName = (typeof INFO_NAMES)[number];

/** The information that is asked for; a game gathers no other. */
export type RequestedInfos = ReadonlySet<InfoName>;

/** How a game stands after a command. What was not asked for is undefined. */
export interface GameState {
  /** What the game says. */
  readonly feedback: string;
  /** Points so far. */
  readonly score: number;
  /** Commands so far that did something. */
  readonly moves: number;
  readonly won: boolean;
  readonly lost: boolean;
  /** Whether the game takes no more commands: won, lost, or left by the player. */
  readonly isOver: boolean;
  readonly lastCommand: string | undefined;
  /** What `look` says. */
  readonly description?: string;
  /** What `inventory` says. */
  readonly inventory?: string;
  /** The name of the player's room. */
  readonly location?: string;
  /** The commands that do something now, in order of the alphabet. */
  readonly admissibleCommands?: readonly string[];
  /** Commands that win the game from here; none when no way is known. */
  readonly policyCommands?: readonly string[];
  /** 1 for a command that brought the end of the game nearer or won it, -1 for a step back or a loss, else 0. */
  readonly intermediateReward?: number;
  /** What is true of the world, in TextWorld's notation and order of the alphabet. */
  readonly facts?: readonly string[];
  /** The action that the game understood last, in TextWorld's notation; null when it was none of the rules'. */
  readonly lastAction?: string | null;
}

/** A text game that is being played: a story file's or a generated one's. */
export interface TextGame {
  /** Starts it, from its beginning if it has been played before. */
  start(): GameState;
  /** Types a command. */
  send(command: string): GameState;
}
