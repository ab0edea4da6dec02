import type { Game } from "./game.js";
import type { Action } from "./logic/action.js";
import { compareStrings } from "./logic/terms.js";
import type { GameProgress } from "./progress/game-progress.js";
import type { GameEvent } from "./progress/quests.js";
import type { GameState, InfoName, RequestedInfos } from "./text-game.js";

const TRACKED: readonly InfoName[] = [
  "admissibleCommands",
  "policyCommands",
  "intermediateReward",
  "facts",
  "lastAction",
  "location",
];
const QUESTS: readonly InfoName[] = ["policyCommands", "intermediateReward"];

/** Whether the information can only be had by following the rules of the game. */
export function needsTracking(infos: RequestedInfos): boolean {
  return TRACKED.some((name) => infos.has(name));
}

/**
 * Follows a running game by its rules: which action was done last, what can be done, how far the quests are,
 * and how that is told.
 */
export class GameView {
  readonly progress: GameProgress;
  /** Actions done. */
  moves = 0;
  private lastAction: Action | undefined;
  private policy: readonly Action[] | undefined;
  private previousPolicy: readonly Action[] | undefined;

  constructor(
    private readonly game: Game,
    private readonly infos: RequestedInfos,
    trackQuests = QUESTS.some((name) => infos.has(name)),
  ) {
    this.progress = game.start(trackQuests);
    this.policy = this.progress.winningPolicy();
  }

  /** To be called before the actions of each command. */
  beginCommand(): void {
    this.previousPolicy = this.policy;
  }

  /** Takes note of what the game did: one of the valid actions, or something that no rule speaks of. */
  note(action: Action | undefined): void {
    this.lastAction = action;
    if (action === undefined) return;
    this.progress.update(action);
    this.policy = this.progress.winningPolicy();
    this.moves++;
  }

  /** The tracked part of a state. */
  state(won: boolean, lost: boolean): Partial<GameState> {
    const { game, infos, progress } = this;
    const when = <T>(name: InfoName, value: () => T): T | undefined => (infos.has(name) ? value() : undefined);
    return {
      admissibleCommands: when("admissibleCommands", () =>
        [...new Set(game.commandsOf(progress.validActions))].sort(compareStrings),
      ),
      policyCommands: when("policyCommands", () => game.commandsOf(this.policy ?? [])),
      intermediateReward: when("intermediateReward", () => this.intermediateReward(won, lost)),
      facts: when("facts", () => Array.from(progress.facts, (fact) => game.describeFact(fact)).sort(compareStrings)),
      lastAction: when("lastAction", () =>
        this.lastAction === undefined ? null : game.describeAction(this.lastAction),
      ),
      location: when("location", () => game.playerRoom(progress.facts)),
    };
  }

  private intermediateReward(won: boolean, lost: boolean): number {
    if (won) return 1;
    if (lost) return -1;
    if (this.previousPolicy === undefined) return 0;
    // A way that is lost for good counts as a step back, although the story goes on.
    if (this.policy === undefined) return -1;
    return Math.sign(this.previousPolicy.length - this.policy.length);
  }
}

/** What is asked for of the information that a game never changes. */
export function fixedInfos(game: Game, infos: RequestedInfos): Partial<Record<InfoName, unknown>> {
  const describe = ({ condition }: GameEvent) => condition.preconditions.map((fact) => game.describeFact(fact));
  const values: Partial<Record<InfoName, () => unknown>> = {
    objective: () => game.objective,
    maxScore: () => game.maxScore,
    entities: () => game.entities,
    typedEntities: () => game.typedEntities,
    verbs: () => game.verbs,
    commandTemplates: () => game.commandTemplates,
    possibleAdmissibleCommands: () => game.possibleAdmissibleCommands,
    winFacts: () => game.quests.map(({ winEvents }) => winEvents.map(describe)),
    failFacts: () => game.quests.map(({ failEvents }) => failEvents.map(describe)),
    walkthrough: () => game.walkthrough,
  };
  return Object.fromEntries([...infos].flatMap((name) => (values[name] ? [[name, values[name]()]] : [])));
}
