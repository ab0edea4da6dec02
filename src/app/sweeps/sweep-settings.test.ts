import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { planSweep } from "./sweep-plan.js";
import { resolveSweepConfig, sweepSettings, type SweepOptions } from "./sweep-settings.js";

const search = { entropyCoef: [0, 0.1] };
const sweep = { env: "Blackjack-v1", search };

describe("resolveSweep", () => {
  it("resolves all settings, idempotently", () => {
    const all = [
      { ...sweep, method: "grid" },
      { ...sweep, trials: 2, seeds: [4, 2], goal: "minimize", metric: "loss/policy" },
      { ...sweep, search: { r: "1..40" }, method: "halving", metric: "eval/mean_return", train: { numEnvs: 8 } },
    ] as const;
    const [grid, random, halving] = all.map((options) => resolveSweepConfig(options));
    expect(grid).toMatchObject({ method: "grid", seeds: [1], metric: "rollout/ep_rew_mean", metricUpdates: 1 });
    expect(grid.trials).toBeUndefined();
    expect(random).toMatchObject({ method: "random", trials: 2, searchSeed: 0, seeds: [4, 2] });
    expect(halving).toMatchObject({ trials: 9, reduction: 3, evalEpisodes: 1000, train: { numEnvs: 8 } });
    expect(halving.metricUpdates).toBeUndefined();
    for (const config of [grid, random, halving]) {
      const saved = JSON.parse(JSON.stringify(config)) as typeof config;
      expect(JSON.stringify(resolveSweepConfig(saved))).toBe(JSON.stringify(config));
    }
  });

  it("defaults to a grid for lists without a number of trials", () => {
    const method = (options: object) => resolveSweepConfig({ ...sweep, ...options }).method;
    expect(method({})).toBe("grid");
    expect(method({ search: { entropyCoef: [0], learningRate: "1e-4..1e-2:log:3" } })).toBe("grid");
    expect(method({ trials: 2 })).toBe("random");
    expect(method({ search: { entropyCoef: [0], learningRate: "1e-4..1e-2:log" } })).toBe("random");
  });

  it("accepts names in any case, and a number of seeds", () => {
    const config = resolveSweepConfig({ ...sweep, method: "random", trials: 2, "search-seed": 5, seeds: 3 } as never);
    expect(config).toMatchObject({ searchSeed: 5, seeds: [1, 2, 3] });
  });

  it.each([
    [{ env: "" }, "A sweep needs `env`"],
    [{ search: {} }, "needs settings to search"],
    [{ search: [1] }, "A sweep's search must be an object"],
    [{ trails: 3 }, 'A sweep has no setting "trails". Did you mean trials?'],
    [{ learningRate: 3 }, "learningRate is a setting of runs, not of the sweep. Move it to train or search"],
    [{ method: "bayes" }, '`method` must be "grid", "random" or "halving"'],
    [{ trials: 0 }, "`trials` must be an integer >= 1"],
    [{ method: "grid", trials: 3 }, "trials is a setting of the methods random and halving"],
    [{ reduction: 2 }, "reduction is a setting of the method halving"],
    [{ evalEpisodes: 10 }, "evalEpisodes is a setting of the metric eval/mean_return"],
    [{ metric: "eval/mean_return", metricUpdates: 3 }, "metricUpdates is a setting of metrics that updates record"],
    [{ train: { learningRat: 1 } }, "Did you mean learningRate?"],
    [{ train: { learningRate: -1 } }, "`learningRate` must be a number >= 0, got -1."],
    [{ train: { seed: 1 } }, "seed is not a trial's own: give the sweep its seeds"],
    [{ train: { evalEpisodes: 1 } }, "give the sweep its evalEpisodes"],
    [{ train: { entropyCoef: 0 } }, "entropyCoef is both searched and fixed"],
    [{ method: "halving", search: { turns: [1, 2] } }, "so turns cannot be searched"],
    [{ seeds: 0 }, "seeds must be a list, or a number from 1 to 1000, got 0"],
    [{ seeds: 1.5 }, "seeds must be"],
    [{ seeds: [] }, "seeds must be"],
    [{ seeds: [1, 1] }, "seeds has 1 twice"],
    [{ seeds: [-1] }, "`seed` must be an integer >= 0, got -1."],
  ])("rejects %j", (more, message) => {
    expect(() => resolveSweepConfig({ ...sweep, ...more } as never)).toThrow(message);
  });
});

describe("planSweep", () => {
  it("gives runs the fixed and the searched settings", () => {
    const { trials, rungs } = planSweep(resolveSweepConfig({ ...sweep, method: "grid", train: { turns: 50 } }));
    expect(rungs).toEqual([{ trials: 2, share: 1 }]);
    expect(trials.map(({ options }) => options)).toEqual(
      [0, 0.1].map((entropyCoef) => ({ env: "Blackjack-v1", envOptions: {}, turns: 50, entropyCoef })),
    );
    expect(trials[1].config).toMatchObject({ turns: 50, entropyCoef: 0.1, batchSize: 256 });
  });

  it("reports conflicting settings, and rejects a sweep without a valid trial", () => {
    const sizes = { batchSize: [8, 64], miniBatchSize: [8, 32] };
    const { trials } = planSweep(resolveSweepConfig({ ...sweep, method: "grid", search: sizes }));
    const failed = trials.filter(({ failure }) => failure !== undefined);
    expect(failed.map(({ settings }) => settings)).toEqual([{ batchSize: 8, miniBatchSize: 32 }]);
    expect(failed[0].failure).toContain("a batch has only 8 samples");
    const none = resolveSweepConfig({ ...sweep, method: "grid", search: { epsilon: [0.1, 0.2] } });
    expect(() => planSweep(none)).toThrow(
      "No trial of the sweep is valid: epsilon is a setting of grpo, rloo, reinforce",
    );
  });
});

describe("docs/sweep.md", async () => {
  const page = await readFile(new URL("../../../docs/sweep.md", import.meta.url), "utf8");

  it("shows a valid sweep file", () => {
    const example = JSON.parse(/```json\n([\s\S]*?)```/.exec(page)![1]) as SweepOptions;
    const { trials, rungs } = planSweep(resolveSweepConfig(example));
    expect(trials.every(({ failure }) => failure === undefined)).toBe(true);
    expect(rungs.map(({ trials }) => trials)).toEqual([12, 4, 1]);
  });

  it("lists every setting of a sweep with its default", () => {
    for (const [name, { default: usual }] of Object.entries(sweepSettings)) {
      const row = page.split("\n").find((line) => line.startsWith(`| \`${name}\``));
      const said = row?.split("|")[2].replaceAll("`", "").trim();
      expect([name, said]).toEqual([name, usual === undefined ? (said ?? "missing") : String(usual)]);
    }
  });
});
