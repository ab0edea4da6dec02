import { readCounts } from "../env-options.js";
import { Discrete } from "../spaces/index.js";
import { createGameText, RulesGame, type RulesGameOptions } from "./rules-game.js";

/** Options of `Pig`. */
export interface PigOptions extends RulesGameOptions {
  /** Points that win. Default 100. */
  readonly goal?: number;
  /**
   * Rolls and holds of both players after which the higher score wins, tested when a turn ends.
   * Default 0: no limit.
   */
  readonly maxActions?: number;
}

type PigPosition = {
  readonly scores: readonly number[];
  readonly turnTotal: number;
  readonly seat: number;
  readonly actions: number;
};

const ROLL = 0;

/**
 * Pig: roll a die and add up, a 1 loses the turn's total, hold keeps it. Actions: roll, hold. Win
 * 1, loss -1.
 */
export class Pig extends RulesGame<PigPosition> {
  override readonly actionSpace = new Discrete(2);
  override get isPerfectInformation(): boolean {
    return true;
  }
  override readonly text;
  readonly goal: number;
  private readonly maxActions: number;

  constructor({ goal, maxActions, ...options }: PigOptions = {}) {
    super(options, ["goal", "maxActions"]);
    const counts = readCounts("Pig", { goal, maxActions }, { goal: [100, 2, 10_000], maxActions: [0, 0, 1_000_000] });
    this.goal = counts.goal;
    this.maxActions = counts.maxActions;
    this.text = createGameText(
      `Pig: reach ${this.goal} points first. Roll adds the die to your turn's total, but a 1 loses it and ends the turn. Hold adds the total to your score and ends the turn. Answer roll or hold.`,
      ["roll", "hold"],
    );
  }

  protected override start(): PigPosition {
    return { scores: [0, 0], turnTotal: 0, seat: 0, actions: 0 };
  }

  override getSeat({ scores, seat, actions, turnTotal }: PigPosition): number | undefined {
    const isOver = Math.max(...scores) >= this.goal || (this.isAtLimit(actions) && turnTotal === 0);
    return isOver ? undefined : seat;
  }

  override listActions(): number[] {
    return [0, 1];
  }

  override next({ scores, turnTotal, seat, actions }: PigPosition, action: number): PigPosition {
    const pass = { turnTotal: 0, seat: 1 - seat, actions: actions + 1 };
    if (action !== ROLL) return { scores: scores.with(seat, scores[seat] + turnTotal), ...pass };
    const die = this.random.randInt(1, 6);
    if (die === 1) return { scores, ...pass };
    return { scores, turnTotal: turnTotal + die, seat, actions: actions + 1 };
  }

  override getReturns(position: PigPosition): readonly number[] {
    const [a, b] = position.scores;
    if (this.getSeat(position) !== undefined || a === b) return [0, 0];
    return a > b ? [1, -1] : [-1, 1];
  }

  override observe({ scores, turnTotal }: PigPosition, seat: number): string {
    return `Your score ${scores[seat]}, opponent ${scores[1 - seat]}. This turn ${turnTotal}.`;
  }

  /** Whether the limit is reached; a turn in which points were rolled continues all the same. */
  private isAtLimit(actions: number): boolean {
    return this.maxActions > 0 && actions >= this.maxActions;
  }
}
