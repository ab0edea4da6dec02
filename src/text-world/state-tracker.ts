import type { Game } from "./game.js";
import type { Action } from "./logic/action.js";
import { compareStrings } from "./logic/proposition.js";
import type { GameProgress } from "./progress/game-progress.js";
import type { GameEvent } from "./progress/quest-progress.js";
import type { GameState, InfoName, RequestedInfos } from "./text-game.js";

const TRACKED_INFOS: readonly InfoName[] = [
  "admissibleCommands",
  "policyCommands",
  "intermediateReward",
  "facts",
  "lastAction",
  "location",
];
const QUEST_INFOS: readonly InfoName[] = ["policyCommands", "intermediateReward"];

/** Whether the information can only be had by following the rules of the game. */
export function needsTracking(infos: RequestedInfos): boolean {
  return TRACKED_INFOS.some((name) => infos.has(name));
}

/**
 * Follows a running game by its rules: which action was done last, what can be done, how far the quests are,
 * and how that is told.
 */
export class StateTracker {
  readonly progress: GameProgress;
  /** Actions done. */
  moves = 0;
  private lastAction: Action | undefined;
  private policy: readonly Action[] | undefined;
  private previousPolicy: readonly Action[] | undefined;

  constructor(
    private readonly game: Game,
    private readonly infos: RequestedInfos,
    trackQuests = QUEST_INFOS.some((name) => infos.has(name)),
  ) {
    this.progress = game.createProgress(trackQuests);
    this.policy = this.progress.winningPolicy();
  }

  /** To be called before the actions of each command. */
  beginCommand(): void {
    this.previousPolicy = this.policy;
  }

  /** Takes note of what the game did: one of the valid actions, or something that no rule speaks of. */
  recordAction(action: Action | undefined): void {
    this.lastAction = action;
    if (action === undefined) return;
    this.progress.update(action);
    this.policy = this.progress.winningPolicy();
    this.moves++;
  }

  /** The tracked part of a state. */
  getState(won: boolean, lost: boolean): Partial<GameState> {
    const { game, infos, progress } = this;
    const includeIf = <T>(name: InfoName, value: () => T): T | undefined => (infos.has(name) ? value() : undefined);
    return {
      admissibleCommands: includeIf("admissibleCommands", () =>
        [...new Set(game.formatCommands(progress.validActions))].sort(compareStrings),
      ),
      policyCommands: includeIf("policyCommands", () => game.formatCommands(this.policy ?? [])),
      intermediateReward: includeIf("intermediateReward", () => this.intermediateReward(won, lost)),
      facts: includeIf("facts", () =>
        Array.from(progress.facts, (fact) => game.describeFact(fact)).sort(compareStrings),
      ),
      lastAction: includeIf("lastAction", () =>
        this.lastAction === undefined ? null : game.describeAction(this.lastAction),
      ),
      location: includeIf("location", () => game.getPlayerRoom(progress.facts)),
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
export function getStaticInfos(game: Game, infos: RequestedInfos): Partial<Record<InfoName, unknown>> {
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
