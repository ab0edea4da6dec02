import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { CountingEnv, EvenOddAgent, type CountingOptions } from "../../../test/support/counting.js";
import { TrainableModels, readTrainedValues } from "../../../test/support/trainable.js";
import { BlackjackEnv } from "../../envs.js";
import type { LanguageModel } from "../../generation/index.js";
import { evaluate } from "./evaluate.js";

const models = new TrainableModels();
let model: LanguageModel;
beforeAll(async () => {
  model = await models.open({ maxPositions: 512, scale: 0.2 });
});
afterAll(() => models.close());

/** Rewards by the seed that an episode was started with. */
class SeededEnv extends CountingEnv {
  private seed = 0;

  override reset(options: { seed?: number } = {}) {
    this.seed = options.seed ?? 0;
    return super.reset(options);
  }

  override step(action: number) {
    return { ...super.step(action), reward: this.seed % 7 };
  }
}

const agent = () => new EvenOddAgent(model, undefined, { historyTurns: 0 });
const make =
  (options: CountingOptions = {}) =>
  () =>
    new SeededEnv({ length: 1, ...options });

describe("evaluate", () => {
  it("returns the mean return and its standard error over the given number of episodes", async () => {
    const envs: SeededEnv[] = [];
    const result = await evaluate(
      agent(),
      () => {
        envs.push(new SeededEnv({ length: 1 }));
        return envs.at(-1)!;
      },
      { episodes: 50, numEnvs: 8, seed: 3 },
    );
    expect(envs).toHaveLength(8);
    const seeds = envs.flatMap((env) => env.seeds);
    expect(new Set(seeds).size).toBe(50);
    const returns = seeds.map((seed) => seed % 7);
    const mean = returns.reduce((sum, value) => sum + value, 0) / 50;
    const deviation = Math.sqrt(returns.reduce((sum, value) => sum + (value - mean) ** 2, 0) / 49);
    expect(result.meanReturn).toBeCloseTo(mean, 10);
    expect(result.standardError).toBeCloseTo(deviation / Math.sqrt(50), 10);
    expect(result).toMatchObject({ episodes: 50, meanLength: 1, invalidRatio: 0 });
  });

  it.each([
    ["booleans", (success: boolean) => success],
    ["0 and 1", Number],
  ])("returns the share of episodes that succeed, as the environment says: %s", async (_name, encode) => {
    const rewards: number[] = [];
    class SuccessEnv extends SeededEnv {
      override step(action: number) {
        const result = super.step(action);
        rewards.push(result.reward);
        return { ...result, info: { is_success: encode(result.reward >= 4) } };
      }
    }
    const result = await evaluate(agent(), () => new SuccessEnv({ length: 1 }), { episodes: 50, numEnvs: 8 });
    const successes = rewards.filter((reward) => reward >= 4).length;
    expect(successes).toBeGreaterThan(0);
    expect(result.successRate).toBeCloseTo(successes / 50, 10);
    expect(await evaluate(agent(), make(), { episodes: 4 })).not.toHaveProperty("successRate");
  });

  it("refuses a success that is neither true nor false", async () => {
    class UnclearEnv extends CountingEnv {
      override step(action: number) {
        return { ...super.step(action), info: { is_success: "yes" } };
      }
    }
    await expect(evaluate(agent(), () => new UnclearEnv(), { episodes: 2 })).rejects.toThrow(
      '<UnclearEnv> returned an info with is_success "yes"; it must be true or false.',
    );
  });

  it("runs the same episodes for any numEnvs, and others with another seed", async () => {
    const of = (numEnvs: number, seed: number) => evaluate(agent(), make(), { episodes: 30, numEnvs, seed });
    const [one, many, other] = [await of(1, 5), await of(30, 5), await of(30, 6)];
    expect(many).toEqual(one);
    expect(other).not.toEqual(one);
  });

  it("samples greedily, or as in training", async () => {
    class Blind extends EvenOddAgent {
      override formatObservation() {
        return "same";
      }
    }
    const blind = new Blind(model, undefined, { historyTurns: 0 });
    const env = () => new CountingEnv({ length: 30, reward: (_step, action) => action });
    const greedy = await evaluate(blind, env, { episodes: 4, numEnvs: 4 });
    expect([0, 30]).toContain(greedy.meanReturn);
    const drawn = await evaluate(blind, env, { episodes: 4, numEnvs: 4, mode: "train" });
    expect(drawn.meanReturn).toBeGreaterThan(2);
    expect(drawn.meanReturn).toBeLessThan(28);
    expect(drawn.standardError).toBeGreaterThan(0);
  });

  it("does not change the model", async () => {
    const player = agent();
    const before = await readTrainedValues(model);
    await evaluate(player, make(), { episodes: 5 });
    expect(player.pendingTurns).toBe(0);
    expect(await readTrainedValues(model)).toEqual(before);
  });

  it("counts invalid completions", async () => {
    const player = new EvenOddAgent(model, undefined, { historyTurns: 0, invalidAction: { fallback: () => 0 } });
    let asked = 0;
    vi.spyOn(player, "extractAction").mockImplementation(() => (asked++ % 2 === 0 ? (undefined as never) : 1));
    const result = await evaluate(player, make({ length: 2 }), { episodes: 10, numEnvs: 1 });
    expect(result).toMatchObject({ episodes: 10, meanLength: 2, invalidRatio: 0.5 });
  });

  it("stops on a signal, and can be repeated", async () => {
    const player = agent();
    const stop = new AbortController();
    const options = { episodes: 200, numEnvs: 4, seed: 1 };
    const part = await evaluate(player, make({ length: 3 }), {
      ...options,
      signal: stop.signal,
      onProgress: (turns) => {
        if (turns >= 40) stop.abort();
      },
    });
    expect(part.episodes).toBeGreaterThan(4);
    expect(part.episodes).toBeLessThan(50);
    const again = await evaluate(player, make({ length: 3 }), { ...options, episodes: 40 });
    const fresh = await evaluate(agent(), make({ length: 3 }), { ...options, episodes: 40 });
    expect(again).toEqual(fresh);
  });

  it("closes its environments, also on failure", async () => {
    const closed = vi.spyOn(CountingEnv.prototype, "close");
    await evaluate(agent(), make(), { episodes: 3, numEnvs: 2 });
    expect(closed).toHaveBeenCalledTimes(2);
    vi.spyOn(CountingEnv.prototype, "step").mockImplementationOnce(() => {
      throw new Error("broken");
    });
    await expect(evaluate(agent(), make(), { episodes: 3, numEnvs: 2 })).rejects.toThrow("broken");
    expect(closed).toHaveBeenCalledTimes(4);
    vi.restoreAllMocks();
  });

  it.each([
    [{ episodes: 0 }, "`episodes` must be an integer >= 1"],
    [{ episodes: 1e15 }, "`episodes` must be an integer >= 1 and <= 1000000"],
    [{ episodes: 2, numEnvs: 0 }, "`numEnvs` must be an integer >= 1"],
    [{ episodes: 2, seed: -1 }, "`seed` must be an integer >= 0"],
  ])("rejects %j", async (options, message) => {
    await expect(evaluate(agent(), make(), options)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining(message) as string,
    });
  });

  it("evaluates Blackjack greedily", async () => {
    class Sticker extends EvenOddAgent {
      override formatObservation(observation: unknown) {
        return String(observation);
      }

      override extractAction(): 0 {
        return 0;
      }
    }
    // Standing at once: the return of a hand that is never improved.
    const result = await evaluate(new Sticker(model, undefined, { historyTurns: 0 }), () => new BlackjackEnv(), {
      episodes: 400,
    });
    expect(result.meanLength).toBe(1);
    expect(result.meanReturn).toBeGreaterThan(-0.4);
    expect(result.meanReturn).toBeLessThan(0.05);
  });
});
