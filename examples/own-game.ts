/**
 * A game for two players, in one file. Train one policy on both seats from the command line:
 *
 *     npx llamagym train ./own-game.js --self-play
 *
 * Node 22.18 and later also run the TypeScript file itself; for earlier versions compile it first.
 */
import { createGameText, Discrete, RulesGame, type GameText } from "llamagym/envs";

/** Stones on the heap, and who moves. */
type Position = { readonly stones: number; readonly seat: number };

const RULES = "Stones lie on a heap. Take 1, 2 or 3; who takes the last one wins. How many do you take?";
const START = 10;
const MOVES = [1, 2, 3];

/** A heap of stones: action 0, 1 or 2 takes 1, 2 or 3, and who takes the last one wins. */
export class StonesGame extends RulesGame<Position> {
  override readonly actionSpace = new Discrete(MOVES.length);
  override readonly isPerfectInformation = true;
  override readonly text: GameText<string, number> = createGameText(
    RULES,
    MOVES.map((count) => `${count}`),
  );

  /** The first position; chance draws from `this.random`. */
  protected override start(): Position {
    return { stones: START, seat: 0 };
  }

  /** Who moves; undefined at the end. */
  override getSeat({ stones, seat }: Position): number | undefined {
    return stones > 0 ? seat : undefined;
  }

  override listActions({ stones }: Position): number[] {
    return MOVES.flatMap((count, action) => (count <= stones ? [action] : []));
  }

  override next({ stones, seat }: Position, action: number): Position {
    return { stones: stones - action - 1, seat: 1 - seat };
  }

  /** What each seat has won: at the end, the seat that would move next has lost. */
  override getReturns({ stones, seat }: Position): readonly number[] {
    if (stones > 0) return [0, 0];
    return seat === 0 ? [-1, 1] : [1, -1];
  }

  /** What a seat sees. */
  override observe({ stones }: Position): string {
    return `${stones} stones`;
  }

  /** All first positions, for exact evaluation. */
  override listStarts() {
    return [{ position: this.start(), probability: 1 }];
  }
}
