import { describe, expect, it } from "vitest";
import { BanditEnv, type BanditOptions } from "./bandit.js";

/** Mean coins of an episode when the same arm is pulled all the time. */
function meanReturn(options: BanditOptions, arm: number, episodes = 2000): number {
  const env = new BanditEnv(options);
  let coins = 0;
  env.reset({ seed: 1 });
  for (let episode = 0; episode < episodes; episode++) {
    for (let pull = 0; pull < 10; pull++) coins += env.step(arm).reward;
    env.reset();
  }
  return coins / episodes;
}

describe("BanditEnv", () => {
  it("pays 2 coins in 10 pulls for the best-sounding name and 8 for the worst-sounding one", () => {
    expect(meanReturn({}, 0)).toBeCloseTo(2, 0);
    expect(meanReturn({}, 1)).toBeCloseTo(8, 0);
    expect(meanReturn({ names: "honest" }, 0)).toBeCloseTo(8, 0);
    expect(meanReturn({ names: "random" }, 0)).toBeCloseTo(5, 0);
  });

  it("formats the payout of each arm by its name", () => {
    const env = new BanditEnv({ arms: 3, pulls: 4 });
    env.reset({ seed: 3 });
    const { observation, info, terminated } = env.step(2);
    expect(terminated).toBe(false);
    expect(Array.from(observation.slice(0, 5))).toEqual([0, 0, 0, 0, 1]);
    expect(env.text.formatObservation(observation, info)).toMatch(
      /^Golden Goose: not pulled yet. Old Bucket: not pulled yet. Cursed Well: [01] coins in 1 pulls. 3 pulls left./,
    );
    expect(env.text.parseAction("Not the Golden Goose but the old bucket!", observation, info)).toBe(1);
  });

  it("rejects a machine with one arm", () => {
    expect(() => new BanditEnv({ arms: 1 })).toThrow(/2 to 8 arms/);
  });
});
