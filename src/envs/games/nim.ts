import { invalidArgument } from "../../core/errors.js";
import { Discrete } from "../spaces/index.js";
import type { GameText } from "./game.js";
import { createGameText, RulesGame, type RulesGameOptions } from "./rules-game.js";

/** Options of `Nim`. */
export interface NimOptions extends RulesGameOptions {
  /** Objects in each pile, 1 to 20 in at most 10 piles. Default [3, 4, 5]. */
  readonly piles?: readonly number[];
}

/** Positions up to which a game is enumerated. */
const MAX_ENUMERATED = 20_000;

type NimPosition = { readonly piles: readonly number[]; readonly seat: number };

/**
 * Nim: take any number of objects from one pile; who takes the last one wins. Action
 * `pile * max + count - 1`, where max is the largest pile of the start; its name is the number of
 * the pile from 1 and the count: "2 3".
 */
export class Nim extends RulesGame<NimPosition> {
  override readonly actionSpace: Discrete;
  override get isPerfectInformation(): boolean {
    return true;
  }
  override readonly text: GameText<string, number>;
  private readonly piles: readonly number[];
  private readonly max: number;

  constructor({ piles = [3, 4, 5], ...options }: NimOptions = {}) {
    super(options, ["piles"]);
    const isPile = (pile: unknown) => Number.isInteger(pile) && (pile as number) >= 1 && (pile as number) <= 20;
    if (!Array.isArray(piles) || piles.length === 0 || piles.length > 10 || !piles.every(isPile))
      throw invalidArgument(`Nim: piles must be 1 to 10 integers from 1 to 20, got ${JSON.stringify(piles)}.`);
    this.piles = [...piles];
    this.max = Math.max(...piles);
    this.actionSpace = new Discrete(piles.length * this.max);
    const names = Array.from(
      { length: this.actionSpace.n },
      (_, i) => `${Math.floor(i / this.max) + 1} ${(i % this.max) + 1}`,
    );
    this.text = createGameText(
      "Nim: take one or more objects from one pile; who takes the last object wins. Answer the number of the pile and how many, such as 2 3.",
      names,
    );
  }

  /**
   * Returns the action that takes objects from a pile, counted from 0; undefined where there is
   * none.
   */
  getAction(pile: number, count: number): number | undefined {
    if (!(pile >= 0 && pile < this.piles.length && count >= 1 && count <= this.max)) return undefined;
    return pile * this.max + count - 1;
  }

  protected override start(): NimPosition {
    return { piles: this.piles, seat: 0 };
  }

  override listStarts(): { position: NimPosition; probability: number }[] | undefined {
    if (this.piles.reduce((product, pile) => product * (pile + 1), 1) > MAX_ENUMERATED) return undefined;
    return [{ position: this.start(), probability: 1 }];
  }

  override getSeat({ piles, seat }: NimPosition): number | undefined {
    return piles.some((pile) => pile > 0) ? seat : undefined;
  }

  override listActions({ piles }: NimPosition): number[] {
    return piles.flatMap((pile, i) => Array.from({ length: pile }, (_, count) => i * this.max + count));
  }

  override next({ piles, seat }: NimPosition, action: number): NimPosition {
    const pile = Math.floor(action / this.max);
    return { piles: piles.with(pile, piles[pile] - (action % this.max) - 1), seat: 1 - seat };
  }

  override getReturns(position: NimPosition): readonly number[] {
    if (this.getSeat(position) !== undefined) return [0, 0];
    return position.seat === 1 ? [1, -1] : [-1, 1];
  }

  override observe({ piles }: NimPosition): string {
    return piles.map((pile, i) => `Pile ${i + 1}: ${pile}`).join(", ");
  }
}
