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

/** Returns whether the info entries require tracking the game's rules. */
export function needsTracking(infos: RequestedInfos): boolean {
  return TRACKED_INFOS.some((name) => infos.has(name));
}

/**
 * Tracks a running game by its rules: its last action, valid actions and quest progress,
 * and formats them.
 */
export class StateTracker {
  readonly progress: GameProgress;
  /** Number of actions taken. */
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

  /** Call before recording the actions of a command. */
  beginCommand(): void {
    this.previousPolicy = this.policy;
  }

  /** Records what the game did: a valid action, or undefined for an effect outside the rules. */
  recordAction(action: Action | undefined): void {
    this.lastAction = action;
    if (action === undefined) return;
    this.progress.update(action);
    this.policy = this.progress.winningPolicy();
    this.moves++;
  }

  /** Returns the tracked part of a state. */
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
    // A quest that became impossible counts as a regression, although the story continues.
    if (this.policy === undefined) return -1;
    return Math.sign(this.previousPolicy.length - this.policy.length);
  }
}

/** Returns the requested info entries that never change. */
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
