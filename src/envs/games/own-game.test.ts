import { describe, expect, it } from "vitest";
import { getErrorMessage } from "../../../test/support/error-message.js";
import { Discrete } from "../spaces/index.js";
import type { ResetOptions } from "../env.js";
import { asEnv } from "./as-env.js";
import { checkGame } from "./check-game.js";
import { computeGameValue, computeNashConv, createMinimax, uniformPolicy } from "./exact.js";
import { createRandomOpponent } from "./opponents.js";
import { createGameText, RulesGame } from "./rules-game.js";
import { SeatsEnv } from "./seats-env.js";

interface Position {
  [name: string]: number;
  stones: number;
  seat: number;
}

/** Take one or two of three stones; who takes the last one wins. */
class Stones extends RulesGame<Position> {
  override readonly actionSpace = new Discrete(2);
  override readonly isPerfectInformation = true;
  override readonly text = createGameText("Take 1 or 2 stones; who takes the last one wins.", ["1", "2"]);

  protected override start(): Position {
    return { stones: 3, seat: 0 };
  }

  override getSeat({ stones, seat }: Position): number | undefined {
    return stones > 0 ? seat : undefined;
  }

  override listActions({ stones }: Position): number[] {
    return stones > 1 ? [0, 1] : [0];
  }

  override next({ stones, seat }: Position, action: number): Position {
    return { stones: stones - action - 1, seat: 1 - seat };
  }

  override getReturns({ stones, seat }: Position): readonly number[] {
    if (stones > 0) return [0, 0];
    return seat === 0 ? [-1, 1] : [1, -1];
  }

  override observe({ stones }: Position): string {
    return `${stones} stones`;
  }

  override listStarts() {
    return [{ position: this.start(), probability: 1 }];
  }
}

const policies = [uniformPolicy, uniformPolicy];

describe("a game outside of the package", () => {
  it("has exact values where it keeps the rules", async () => {
    await checkGame(new Stones());
    // 1 then 1 then 1, or 1 then 2 (loses), or 2 then 1 (loses).
    expect(computeGameValue(new Stones(), policies).returns).toEqual([-0.5, 0.5]);
    expect(createMinimax(new Stones())({ stones: 3, seat: 0 })).toBe(-1);
  });

  it.each<[string, Stones, RegExp]>([
    [
      "chance in next",
      new (class extends Stones {
        override next(position: Position, action: number): Position {
          return super.next(position, this.random.randInt(0, 1) === 0 && position.stones > 1 ? 0 : action);
        }
      })(),
      /ENV_INVALID: .* no exact values and no minimax player, since next\(\) draws chance: leave out listStarts\(\)/,
    ],
    [
      "starts that are no distribution",
      new (class extends Stones {
        override listStarts() {
          return [1, 2, 3].map((stones) => ({ position: { stones, seat: 0 }, probability: 1 }));
        }
      })(),
      /the probabilities of listStarts\(\) add up to 3, not to 1/,
    ],
    [
      "positions that return",
      new (class extends Stones {
        override next({ stones, seat }: Position): Position {
          return { stones, seat: 1 - seat };
        }
      })(),
      /play returns to the position \{"stones":3,"seat":0\}\. Limit the moves/,
    ],
    [
      "returns that do not add up to 0",
      new (class extends Stones {
        override getReturns({ stones, seat }: Position): readonly number[] {
          return stones > 0 ? [0, 0] : [seat, 1 - seat];
        }
      })(),
      /the returns \[0, 1\] of the end .* do not add up to 0|the returns \[1, 0\] of the end/,
    ],
    [
      "a player without a move",
      new (class extends Stones {
        override listActions({ stones }: Position): number[] {
          return stones > 1 ? [0] : [];
        }
      })(),
      /seat 0 has no legal action in \{"stones":1,"seat":0\}/,
    ],
    [
      "observations that hide what is legal",
      new (class extends Stones {
        override observe(): string {
          return "some stones";
        }
      })(),
      /seat 1 observes "some stones" where it may do \[0,1\], and also where \[0\]/,
    ],
    [
      "endless positions",
      new (class extends Stones {
        override next({ stones, seat }: Position, action: number): Position {
          return { stones: stones + action + 1, seat: 1 - seat };
        }
      })(),
      /more than 300000 positions/,
    ],
    [
      "a position that next changes",
      new (class extends Stones {
        override next(position: Position, action: number): Position {
          position.stones -= action + 1;
          position.seat = 1 - position.seat;
          return position;
        }
      })(),
      /changes the position that it is given \(Cannot assign to read only property 'stones'.*: return a new one/,
    ],
  ])("has none with %s", (_, game, message) => {
    expect(getErrorMessage(() => computeNashConv(game, policies))).toMatch(message);
    expect(getErrorMessage(() => createMinimax(game))).toMatch(message);
  });

  it.each<[string, object, RegExp]>([
    ["rewards of one seat", { rewards: [0] }, /rewards must be 2 finite numbers, one for each seat, got \[0\]/],
    ["rewards that are no numbers", { rewards: [0, NaN] }, /rewards must be 2 finite numbers/],
    ["a seat that it does not have", { seat: 2 }, /a seat must be an integer from 0 to 1, got 2/],
    [
      "no seat before the end",
      { seat: undefined },
      /the seat must be undefined at the end and only there; got seat undef/,
    ],
    ["a seat at the end", { terminated: true }, /only there; got seat [01], terminated true/],
    ["no legal action", { info: { legalActions: [] } }, /info.legalActions must be a list with at least one action/],
    [
      "a legal action of another space",
      { info: { legalActions: [0, 7] } },
      /the legal action 7 is not in Discrete\(2\)/,
    ],
  ])("is refused in play with %s", (_, change, message) => {
    class Odd extends Stones {
      override reset(options: ResetOptions = {}) {
        return { ...super.reset(options), ...change };
      }
    }
    const game = new Odd();
    const opponent = createRandomOpponent(new Stones());
    expect(getErrorMessage(() => asEnv(game, opponent, 0).reset({ seed: 1 }))).toMatch(message);
    expect(getErrorMessage(() => new SeatsEnv(game).reset({ seed: 1 }))).toMatch(message);
  });

  it("may leave out `truncated`, as JavaScript allows", () => {
    class Short extends Stones {
      override reset(options: ResetOptions = {}) {
        return { ...super.reset(options), truncated: undefined as never };
      }
    }
    expect(new SeatsEnv(new Short()).reset({ seed: 1 })).toMatchObject({ observation: "3 stones" });
  });

  it("is refused in play if next changes the position, whose rewards would be 0", () => {
    class Careless extends Stones {
      override next(position: Position, action: number): Position {
        position.stones -= action + 1;
        return position;
      }
    }
    const game = new Careless();
    game.reset({ seed: 1 });
    expect(getErrorMessage(() => game.step(0))).toMatch(/ENV_INVALID: Careless changes the position that it is given/);
  });

  it("plays chance in next where it lists no starts", () => {
    class Windy extends Stones {
      override next(position: Position, action: number): Position {
        return super.next(position, this.random.randInt(0, 1) === 0 ? 0 : action);
      }
      override listStarts() {
        return undefined as never;
      }
    }
    const game = new Windy();
    game.reset({ seed: 1 });
    expect(game.step(1).terminated).toBe(false);
    expect(getErrorMessage(() => createMinimax(game))).toMatch(/has no minimax player/);
  });
});
