import type { TextWorldGame } from "./game.js";
import type { Action } from "./logic/action.js";
import { compareStrings } from "./logic/proposition.js";
import type { GameProgress } from "./progress/game-progress.js";
import { TRACKED_INFOS, type GameState, type RequestedInfos } from "./text-game.js";

type TrackedInfo = (typeof TRACKED_INFOS)[number];

/** Returns whether the info entries require tracking the game's rules. */
export function needsTracking(infos: RequestedInfos): boolean {
  return TRACKED_INFOS.some((name) => infos.has(name));
}

/** Tracks a running game by its rules: last action, valid actions and quest progress. */
export class StateTracker {
  readonly progress: GameProgress;
  /** Number of actions taken. */
  moves = 0;
  private lastAction: Action | undefined;
  private policy: readonly Action[] | undefined;
  private previousPolicy: readonly Action[] | undefined;

  constructor(
    private readonly game: TextWorldGame,
    private readonly infos: RequestedInfos,
    trackQuests = infos.has("policyCommands") || infos.has("intermediateReward"),
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
    const { game, progress, lastAction } = this;
    const values: { readonly [Name in TrackedInfo]: () => GameState[Name] } = {
      location: () => game.getPlayerRoom(progress.facts),
      admissibleCommands: () => [...new Set(game.formatCommands(progress.validActions))].sort(compareStrings),
      policyCommands: () => game.formatCommands(this.policy ?? []),
      intermediateReward: () => this.intermediateReward(won, lost),
      facts: () => Array.from(progress.facts, (fact) => game.describeFact(fact)).sort(compareStrings),
      lastAction: () => (lastAction === undefined ? null : game.describeAction(lastAction)),
    };
    const requested = TRACKED_INFOS.filter((name) => this.infos.has(name));
    return Object.fromEntries(requested.map((name) => [name, values[name]()]));
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
