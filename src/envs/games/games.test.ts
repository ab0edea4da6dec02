import { describe, expect, it } from "vitest";
import type { Env } from "../env.js";
import { make, registry } from "../registry/make.js";
import { asEnv } from "./as-env.js";
import { ConnectFour } from "./connect-four.js";
import {
  computeBestMoves,
  computeBestResponse,
  computeGameValue,
  computeNashConv,
  createMinimax,
  uniformPolicy,
  type BehaviorPolicy,
} from "./exact.js";
import { KuhnPoker } from "./kuhn-poker.js";
import { Nim } from "./nim.js";
import { createMinimaxOpponent, createPolicyOpponent, createRandomOpponent } from "./opponents.js";
import { Pig } from "./pig.js";
import type { RulesGame } from "./rules-game.js";
import { SimpleNegotiation, type SimpleNegotiationOptions } from "./simple-negotiation.js";
import { TicTacToe } from "./tic-tac-toe.js";

const getCode = (call: () => unknown): string => {
  try {
    call();
    return "none";
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
};

/** Plays a best move, equally good ones with equal probability. */
function createMinimaxPolicy(game: TicTacToe): BehaviorPolicy {
  const evaluate = createMinimax(game);
  return ({ observation, seat, legalActions }) => {
    const board = observation.split("\n").slice(1).join("").replaceAll(" ", "");
    const values = legalActions.map((action) => evaluate(game.next(board, action)) * (seat === 0 ? 1 : -1));
    const best = values.filter((value) => value === Math.max(...values)).length;
    return values.map((value) => (value === Math.max(...values) ? 1 / best : 0));
  };
}

/** Wins count a little more than losses, which decides between replies of equal score. */
class WinsFirst extends TicTacToe {
  override getReturns(board: string): readonly number[] {
    return super.getReturns(board).map((value) => (value > 0 ? 1 + 1e-6 : value));
  }
}

describe("tic-tac-toe's exact results", () => {
  const game = new TicTacToe();
  const minimax = createMinimaxPolicy(game);
  it.each<[string, BehaviorPolicy[], number[]]>([
    ["random against random", [uniformPolicy, uniformPolicy], [0.5849, 0.127, 0.2881]],
    ["minimax against random", [minimax, uniformPolicy], [0.9678, 0.0322, 0]],
    ["random against minimax", [uniformPolicy, minimax], [0, 0.2225, 0.7775]],
    ["minimax against minimax", [minimax, minimax], [0, 1, 0]],
  ])("of %s", (_, policies, [win, draw, loss]) => {
    const { outcomes } = computeGameValue(game, policies);
    expect(outcomes[0].win).toBeCloseTo(win, 4);
    expect(outcomes[0].draw).toBeCloseTo(draw, 4);
    expect(outcomes[0].loss).toBeCloseTo(loss, 4);
    expect(outcomes[1]).toEqual({ win: outcomes[0].loss, draw: outcomes[0].draw, loss: outcomes[0].win });
  });

  it("of best responses to random play: 0.9948 wins in the first seat, 0.9344 in the second", () => {
    const first = computeBestResponse(game, uniformPolicy, 0);
    expect(computeGameValue(game, [first.policy, uniformPolicy]).outcomes[0].win).toBeCloseTo(0.9948, 4);
    const second = computeBestResponse(game, uniformPolicy, 1);
    expect(second.value).toBeCloseTo(0.9249, 4);
    // Of equally good replies, those that win more often.
    const { policy } = computeBestResponse(new WinsFirst(), uniformPolicy, 1);
    expect(computeGameValue(game, [uniformPolicy, policy]).outcomes[1].win).toBeCloseTo(0.9344, 4);
    expect((first.value + second.value) / 2).toBeCloseTo(registry.spec("TicTacToe-v0").knownReturns!.best, 4);
  });

  it("of minimax: neither seat gains by another policy", () => {
    expect(computeNashConv(game, [minimax, minimax])).toBeCloseTo(0, 12);
  });
});

describe("the best moves of Nim", () => {
  const game = new Nim({ piles: [1, 2] });

  it("are 1 of 3 in the first situation and 1 of 2 in the only other one where moves differ", () => {
    const { situations, probability } = computeBestMoves(game, uniformPolicy);
    expect(situations).toBe(2);
    expect(probability).toBeCloseTo((1 / 3 + 1 / 2) / 2, 12);
  });

  it("leave piles whose binary sum is 0", () => {
    const large = new Nim();
    const policy: BehaviorPolicy = ({ observation, legalActions }) => {
      const piles = Array.from(observation.matchAll(/: (\d+)/g), ([, count]) => Number(count));
      const leaves = legalActions.map((action) => {
        const [pile, count] = large.text.formatAction(action).split(" ").map(Number);
        return piles.with(pile - 1, piles[pile - 1] - count).reduce((sum, left) => sum ^ left, 0);
      });
      const wins = leaves.filter((sum) => sum === 0).length;
      return leaves.map((sum) => (wins === 0 ? 1 / leaves.length : sum === 0 ? 1 / wins : 0));
    };
    const { situations, probability } = computeBestMoves(large, policy);
    expect(probability).toBeCloseTo(1, 12);
    expect(situations).toBeGreaterThan(100);
  });

  it("are not counted in poker, which hides cards", () => {
    expect(() => computeBestMoves(new KuhnPoker(), uniformPolicy)).toThrow("minimax");
  });
});

describe("Kuhn poker's exact results", () => {
  const game = new KuhnPoker();
  /** The first seat's equilibria: bets J with probability a and K with 3a. */
  const equilibrium =
    (a: number): BehaviorPolicy =>
    ({ seat, observation }) => {
      const card = /card is (\w)/.exec(observation)![1];
      const isOpening = observation.includes("You open");
      const bets: Record<string, number> = isOpening ? { J: a, Q: 0, K: 3 * a } : { J: 1 / 3, Q: 0, K: 1 };
      const calls: Record<string, number> = { J: 0, Q: seat === 0 ? a + 1 / 3 : 1 / 3, K: 1 };
      const chance = /(?:^|\s)Opponent: bet\.$/.test(observation) ? calls[card] : bets[card];
      return [1 - chance, chance];
    };

  it("of uniform play: +0.125, best responses 0.5 and 0.4167, NashConv 0.9167", () => {
    expect(computeGameValue(game, [uniformPolicy, uniformPolicy]).returns[0]).toBeCloseTo(0.125, 12);
    expect(computeBestResponse(game, uniformPolicy, 0).value).toBeCloseTo(0.5, 12);
    expect(computeBestResponse(game, uniformPolicy, 1).value).toBeCloseTo(5 / 12, 12);
    expect(computeNashConv(game, [uniformPolicy, uniformPolicy])).toBeCloseTo(11 / 12, 12);
  });

  it.each([0, 0.1, 1 / 3])("of the equilibrium with a = %d: NashConv 0, -1/18 for the first seat", (a) => {
    const policy = equilibrium(a);
    expect(computeNashConv(game, [policy, policy])).toBeCloseTo(0, 12);
    expect(computeGameValue(game, [policy, policy]).returns[0]).toBeCloseTo(-1 / 18, 12);
  });

  it("of betting and calling with every card: NashConv 2/3", () => {
    const policy: BehaviorPolicy = () => [0, 1];
    expect(computeNashConv(game, [policy, policy])).toBeCloseTo(2 / 3, 12);
  });

  it("are best for the expert", () => {
    const total = [0, 1].reduce((sum, seat) => sum + computeBestResponse(game, uniformPolicy, seat).value, 0);
    expect(total / 2).toBeCloseTo(registry.spec("KuhnPoker-v0").knownReturns!.best, 4);
  });
});

describe("Nim's exact results", () => {
  it.each([[[3, 4, 5]], [[2, 3, 4, 7]], [[2, 5, 7, 9, 11]]])("the first player wins %j", (piles) => {
    const small = piles.length < 5 ? piles : [2, 5, 7];
    const game = new Nim({ piles: small });
    const nimSum = small.reduce((sum, pile) => sum ^ pile, 0);
    expect(createMinimax(game)({ piles: small, seat: 0 })).toBe(nimSum === 0 ? -1 : 1);
  });

  it("is even under random play from [3, 4, 5], and the expert's return is the best", () => {
    const game = new Nim();
    expect(computeGameValue(game, [uniformPolicy, uniformPolicy]).outcomes[0].win).toBeCloseTo(0.5, 12);
    const total = [0, 1].reduce((sum, seat) => sum + computeBestResponse(game, uniformPolicy, seat).value, 0);
    expect(total / 2).toBeCloseTo(registry.spec("Nim-v0").knownReturns!.best, 4);
  });
});

describe("illegal moves", () => {
  it("lose the game, and the info tells whose it was", () => {
    const game = new TicTacToe();
    game.reset({ seed: 1 });
    game.step(4);
    const result = game.step(4);
    expect(result).toMatchObject({ seat: undefined, rewards: [1, -1], terminated: true, info: { illegal: 1 } });
    expect(getCode(() => game.step(0))).toBe("ENV_NOT_RESET");
  });

  it("are asked again once with illegalMoves: retry", () => {
    const game = new Nim({ illegalMoves: "retry" });
    game.reset();
    expect(game.step(undefined)).toMatchObject({ seat: 0, rewards: [0, 0], terminated: false, info: { illegal: 0 } });
    game.step(0);
    game.step(undefined);
    expect(game.step(undefined)).toMatchObject({ rewards: [1, -1], terminated: true, info: { illegal: 1 } });
  });
});

describe("random openings", () => {
  const firstObservations = (game: Nim, games: number) =>
    Array.from({ length: games }, (_, i) => game.reset(i === 0 ? { seed: 5 } : {}).observation!);

  it("start games from all positions that are not over, the same ones for a seed", () => {
    const starts = firstObservations(new Nim({ piles: [1, 2], randomOpening: 3 }), 200);
    expect(firstObservations(new Nim({ piles: [1, 2], randomOpening: 3 }), 200)).toEqual(starts);
    const piles = new Set(starts.map((start) => Array.from(start.matchAll(/: (\d+)/g), ([, count]) => count).join()));
    expect([...piles].sort()).toEqual(["0,1", "0,2", "1,0", "1,1", "1,2"]);
  });

  it("leave the agent a turn, also where the opponent could end the game before", async () => {
    const game = new TicTacToe({ randomOpening: 8 });
    const env = asEnv(game, createMinimaxOpponent(game), 1);
    const { info } = await env.reset({ seed: 3 });
    const observations = [info.legalActions as readonly number[]];
    for (let i = 0; i < 50; i++) observations.push((await env.reset()).info.legalActions as readonly number[]);
    expect(observations.every(({ length }) => length > 0)).toBe(true);
    expect(new Set(observations.map(({ length }) => length)).size).toBeGreaterThan(2);
  });

  it("do not change exact results, and are refused in poker and as numbers that are none", () => {
    const values = (randomOpening: number) =>
      computeGameValue(new TicTacToe({ randomOpening }), [uniformPolicy, uniformPolicy]).returns;
    expect(values(4)).toEqual(values(0));
    expect(() => new KuhnPoker({ randomOpening: 1 })).toThrow("randomOpening is for games");
    for (const randomOpening of [-1, 0.5, 101]) expect(() => new Nim({ randomOpening })).toThrow("from 0 to 100");
  });
});

describe("rules", () => {
  it("of connect four: a row, a column and both diagonals win, a full column is illegal", () => {
    const play = (columns: string) => {
      const game = new ConnectFour();
      let result = game.reset();
      for (const column of columns) result = game.step(Number(column));
      return result;
    };
    expect(play("001122").terminated).toBe(false);
    expect(play("0011223").rewards).toEqual([1, -1]);
    expect(play("0102030").rewards).toEqual([1, -1]);
    expect(play("01122323363").rewards).toEqual([1, -1]);
    expect(play("65544343303").rewards).toEqual([1, -1]);
    expect(play("000000").info.legalActions).toEqual([1, 2, 3, 4, 5, 6]);
    expect(play("0000000").info.illegal).toBe(0);
  });

  it("of Pig: the limit is tested when a turn ends, and the higher score wins", () => {
    const game = new Pig({ goal: 100, maxActions: 1 });
    game.reset({ seed: 1 });
    expect(game.step(1)).toMatchObject({ terminated: true, rewards: [0, 0] });
    const rolling = new Pig({ maxActions: 1 });
    rolling.reset({ seed: 0 });
    const { observation, seat } = rolling.step(0);
    expect([observation, seat]).toEqual(["Your score 0, opponent 0. This turn 4.", 0]);
  });

  it("of Kuhn poker: a bet and a call double the stake, except with TextArena's", () => {
    const play = (game: KuhnPoker, moves: readonly number[]) => {
      let result = game.reset({ seed: 3 });
      for (const move of moves) result = game.step(move);
      return Math.abs(result.rewards[0]);
    };
    expect(play(new KuhnPoker(), [1, 3])).toBe(2);
    expect(play(new KuhnPoker(), [0, 0])).toBe(1);
    expect(play(new KuhnPoker({ rules: "text-arena", rounds: 1 }), [1, 3])).toBe(1);
  });

  describe("of negotiation", () => {
    const start = (options: SimpleNegotiationOptions = {}) => {
      const game = new SimpleNegotiation({ turns: 4, ...options });
      game.reset({ seed: 0 });
      return game;
    };

    it("trade stocks by an offer that the other player accepts, and the larger gain wins", () => {
      const game = start();
      expect(game.currentPosition.stocks[0]).toEqual([17, 18, 6, 13, 21]);
      game.step("offer 2 Wheat, 1 Wood -> 1 Ore");
      expect(game.step("accept").info.legalActions).not.toContain("accept");
      expect(game.currentPosition.stocks[0]).toEqual([15, 17, 6, 13, 22]);
      game.step("deny");
      expect(game.step("deny")).toMatchObject({ terminated: true, rewards: [1, -1] });
    });

    it.each([
      ["an offer of more than the stock", ["offer 99 Ore -> 1 Wheat"]],
      ["an accepted trade that the player cannot pay", ["offer 1 Wheat -> 99 Ore", "accept"]],
      ["an acceptance without an offer", ["accept"]],
      ["an acceptance after the offer was answered", ["offer 1 Ore -> 1 Wheat", "deny", "deny", "accept"]],
      ["an acceptance with an offer", ["offer 1 Ore -> 1 Wheat", "accept and offer 1 Ore -> 1 Wheat"]],
      ["a resource that does not exist", ["offer 1 Gold -> 1 Wheat"]],
      ["nothing for something", ["offer 0 Ore -> 1 Wheat"]],
    ])("refuse %s", (_, messages) => {
      const game = start({ turns: 10 });
      const results = messages.map((message) => game.step(message));
      expect(results.at(-1)).toMatchObject({ terminated: true, info: { illegal: (messages.length - 1) % 2 } });
    });

    it("save offers of any size as JSON", () => {
      const game = start({ turns: 10 });
      game.step(`offer 1 Wheat -> ${"9".repeat(400)} Ore`);
      const other = start();
      other.setState(JSON.parse(JSON.stringify(game.getState())) as never);
      expect(other.currentPosition).toEqual(game.currentPosition);
      expect(other.step("accept").info.illegal).toBe(1);
    });

    it("read actions in sentences", () => {
      const { text } = start();
      const read = (completion: string) => text.parseAction(completion, "", {});
      expect(read("I accept the offer.")).toBe("accept");
      expect(read("Deal? [Offer: 1 gold -> 1 ore]")).toBeUndefined();
      expect(read("My offer: 2 sheeps, 1 Wood -> 1 ore.")).toBe("offer 1 Wood, 2 Sheep -> 1 Ore");
      expect(read("hello")).toBeUndefined();
      const loose = start({ rules: "text-arena" });
      expect(loose.actionSpace.contains(loose.text.parseAction("\u{1f600}".repeat(2000), "", {})!)).toBe(true);
    });
  });
});

describe("asEnv", () => {
  const play = async (env: Env<string, number>, seeds: number, act: (legal: readonly number[]) => number) => {
    const returns: number[] = [];
    const seats: number[] = [];
    for (let seed = 0; seed < seeds; seed++) {
      let { info } = await env.reset(seed === 0 ? { seed } : {});
      for (let total = 0; ;) {
        const result = await env.step(act(info.legalActions as number[]));
        info = result.info;
        total += result.reward;
        if (!result.terminated) continue;
        returns.push(total);
        seats.push(info.seat as number);
        break;
      }
    }
    return { seats, mean: returns.reduce((sum, value) => sum + value, 0) / seeds };
  };

  it("plays against minimax, which never loses", async () => {
    const game = new TicTacToe();
    const { mean, seats } = await play(asEnv(game, createMinimaxOpponent(game)), 40, (legal) => legal[0]);
    expect(mean).toBeLessThan(0);
    expect(seats.slice(1).every((seat, i) => seat === 1 - seats[i])).toBe(true);
  });

  it("takes asynchronous opponents and forfeits theirs when they name no action", async () => {
    const game = new Nim();
    const env = asEnv(game, async () => Promise.resolve(undefined), 0);
    expect(await play(env, 3, (legal) => legal[0])).toEqual({ seats: [0, 0, 0], mean: 1 });
  });

  it("draws from a policy function", async () => {
    const game: RulesGame<never> = new KuhnPoker() as never;
    const env = asEnv(
      game,
      createPolicyOpponent(() => [1, 0]),
      1,
    );
    // The first seat always checks and folds, so a bet wins the ante.
    expect(await play(env, 20, (legal) => legal[1])).toMatchObject({ mean: 1 });
  });

  it("refuses seats that a game does not have, and opponents that it cannot play", () => {
    const game = new TicTacToe();
    expect(getCode(() => asEnv(game, createRandomOpponent(game), 2))).toBe("INVALID_ARGUMENT");
    expect(getCode(() => make("ConnectFour-v0", { opponent: "minimax" }))).toBe("INVALID_ARGUMENT");
    expect(getCode(() => make("Nim-v0", { piles: [0] }))).toBe("INVALID_ARGUMENT");
    expect(getCode(() => make("TicTacToe-v0", { opponent: "grandmaster" }))).toBe("INVALID_ARGUMENT");
    expect(getCode(() => make("SimpleNegotiation-v0", { rules: "honest" }))).toBe("INVALID_ARGUMENT");
    expect(getCode(() => computeNashConv(new Pig(), [uniformPolicy, uniformPolicy]))).toBe("INVALID_ARGUMENT");
  });
});
