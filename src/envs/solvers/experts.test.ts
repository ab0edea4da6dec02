import { describe, expect, it } from "vitest";
import { solveLinear } from "../../../test/support/solve-linear.js";
import type { Env, KnownReturns } from "../env.js";
import type { Policy } from "../policy.js";
import { make, registry } from "../registry/make.js";
import { CliffWalkingEnv } from "../toy-text/cliff-walking.js";
import type { TabularEnv } from "../toy-text/tabular-env.js";
import { chooseBestAction, computeBlackjackReturn } from "./blackjack-solver.js";
import { solveTabular } from "./tabular-solver.js";

const getReturns = (id: string): KnownReturns => registry.spec(id).knownReturns!;
const createExpert = (env: Env): Policy => env.spec!.expert!(env);

const sab = { sab: true, natural: false };

/**
 * Computes the expected return of the best actions, random ones, or a policy of the state alone,
 * within a step limit.
 */
function computeReturn(env: TabularEnv, choose: "best" | "random" | Int32Array, steps: number): number {
  let values = env.transitions.map(() => 0);
  for (let step = 0; step < steps; step++) {
    const last = values;
    values = env.transitions.map((actions, state) => {
      const actionValues = actions.map((outcomes) =>
        outcomes.reduce((sum, { probability, reward, state: next, terminated }) => {
          return sum + probability * (reward + (terminated ? 0 : last[next]));
        }, 0),
      );
      if (choose === "best") return Math.max(...actionValues);
      if (choose === "random") return actionValues.reduce((sum, value) => sum + value, 0) / actionValues.length;
      return actionValues[choose[state]];
    });
  }
  return weighStarts(env, values);
}

const weighStarts = (env: TabularEnv, values: ArrayLike<number>): number =>
  env.initialDistribution.reduce((sum, probability, state) => sum + probability * values[state], 0);

async function meanReturn(env: Env, policy: Policy<unknown>, episodes: number): Promise<number> {
  let total = 0;
  for (let seed = 0; seed < episodes; seed++) {
    let { observation, info } = await env.reset({ seed });
    for (;;) {
      const result = await env.step(policy(observation, info));
      ({ observation, info } = result);
      total += result.reward;
      if (result.terminated || result.truncated) break;
    }
  }
  return total / episodes;
}

describe("Blackjack's exact returns", () => {
  it("equal the published ones: -0.0431 best, -0.0759 standing at 17, -0.3942 random", () => {
    expect(computeBlackjackReturn(sab, "best")).toBeCloseTo(-0.0431, 4);
    expect(computeBlackjackReturn(sab, (sum) => (sum >= 17 ? 0 : 1))).toBeCloseTo(-0.0759, 4);
    expect(computeBlackjackReturn(sab, "random")).toBeCloseTo(-0.3942, 4);
  });

  it("belong to the policy in Sutton and Barto's figure 5.2", () => {
    const stands = (ace: boolean) => (dealer: number) =>
      Array.from({ length: 11 }, (_, i) => i + 11).find((sum) => chooseBestAction(sum, dealer, ace) === 0);
    const cards = Array.from({ length: 10 }, (_, i) => i + 1);
    expect(cards.map(stands(false))).toEqual([17, 13, 13, 12, 12, 12, 17, 17, 17, 17]);
    expect(cards.map(stands(true)).map((sum) => Math.max(18, sum ?? 0))).toEqual([
      19, 18, 18, 18, 18, 18, 18, 18, 19, 19,
    ]);
  });

  it("are reproduced by the environment", async () => {
    const env = make("Blackjack-v1", { disableEnvChecker: true });
    // The standard error of 5000 games is below 0.014.
    expect(Math.abs((await meanReturn(env, createExpert(env), 5000)) + 0.0431)).toBeLessThan(0.055);
  });
});

describe("exact returns of tables", () => {
  it.each(["FrozenLake-v1", "FrozenLake8x8-v1", "Taxi-v4"])("equal the known returns of %s", (id) => {
    const env = make(id).unwrapped as TabularEnv;
    const limit = registry.spec(id).maxEpisodeSteps!;
    expect(computeReturn(env, "random", limit)).toBeCloseTo(getReturns(id).random, 2);
    expect(computeReturn(env, "best", limit)).toBeCloseTo(getReturns(id).best, 2);
  });

  it("are 14/17 for FrozenLake without a step limit, and 0.74 for a policy of the state alone within 100 steps", () => {
    const env = make("FrozenLake-v1").unwrapped as TabularEnv;
    expect(weighStarts(env, solveTabular(env).values)).toBeCloseTo(14 / 17, 9);
    expect(computeReturn(env, solveTabular(env, 0.99).policy, 100)).toBeCloseTo(0.74, 3);
  });

  it.each([
    ["CliffWalking-v1", false],
    ["CliffWalkingSlippery-v1", true],
  ])("of random actions solve the linear equations of %s", (id, isSlippery) => {
    const { transitions } = new CliffWalkingEnv({ isSlippery });
    const count = transitions.length;
    const a = transitions.map((_, i) => Array.from({ length: count }, (_, j) => (i === j ? 1 : 0)));
    const b = transitions.map(() => 0);
    transitions.forEach((actions, state) => {
      for (const { probability, reward, state: next, terminated } of actions.flat()) {
        b[state] += (probability * reward) / actions.length;
        if (!terminated) a[state][next] -= probability / actions.length;
      }
    });
    expect(solveLinear(a, b)[36]).toBeCloseTo(getReturns(id).random, 1);
    const cliff = new CliffWalkingEnv({ isSlippery });
    expect(weighStarts(cliff, solveTabular(cliff).values)).toBeCloseTo(getReturns(id).best, 2);
  });
});

describe("experts", () => {
  it("exist for exactly the environments whose best return was measured or computed", () => {
    const registered = registry.all().filter(({ expert }) => expert !== undefined);
    const played = registry.all().filter(({ knownReturns }) => knownReturns?.basis !== "page");
    expect(registered).toEqual(played);
  });

  it.each<[string, number, number]>([
    ["FrozenLake-v1", 300, 0.1],
    ["FrozenLake8x8-v1", 100, 0.12],
    ["CliffWalking-v1", 1, 0],
    ["CliffWalkingSlippery-v1", 200, 6],
    ["Taxi-v4", 200, 0.7],
    ["CartPole-v0", 5, 0],
    ["CartPole-v1", 5, 0],
    ["MountainCar-v0", 20, 7],
    ["MountainCarContinuous-v0", 3, 0.5],
    ["Acrobot-v1", 30, 15],
    ["Pendulum-v1", 10, 80],
    ["Sokoban-v0", 100, 0.2],
  ])("reach the known return of %s", async (id, episodes, margin) => {
    const env = make(id);
    const mean = await meanReturn(env, createExpert(env), episodes);
    expect(Math.abs(mean - getReturns(id).best)).toBeLessThanOrEqual(margin);
  });

  it("use the map and rules of the given environment", async () => {
    const dry = make("FrozenLake-v1", { isSlippery: false, desc: ["SFF", "HHF", "GFF"] });
    expect(await meanReturn(dry, createExpert(dry), 1)).toBe(1);
  });
});
