import { afterAll, describe, expect, it } from "vitest";
import { setTrainedValues, TrainableModels } from "../../../test/support/trainable.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { CompletionCache } from "../../generation/sampling/completion-cache.js";
import { CompletionSampler, type TurnCompletion } from "./completion-sampler.js";
import type { CompletionSettings } from "./rollout-settings.js";

const models = new TrainableModels();
afterAll(() => models.close());

interface Result {
  readonly key: string;
  readonly version: number;
  readonly owner: number;
  readonly isAborted: boolean;
}

describe("a completion cache under random schedules", () => {
  it("gives each request a result of its key that is not older than the request, and no abort or failure of another one", async () => {
    const faults: string[] = [];
    for (let seed = 0; seed < 300; seed++) {
      const random = new RandomStream(seed);
      const cache = new CompletionCache();
      let version = 0;
      const pending: (() => void)[] = [];
      const checks: Promise<void>[] = [];
      for (let owner = 0; owner < 40; owner++) {
        const kind = random.integers(10);
        if (kind < 5) {
          const key = random.choice(["a", "b", "c"]);
          const asked = version;
          const outcome = random.choice(["kept", "kept", "aborted", "failed"]);
          const compute = () =>
            new Promise<Result>((resolve, reject) => {
              const result = { key, version, owner, isAborted: outcome === "aborted" };
              pending.push(() => (outcome === "failed" ? reject(new Error(String(owner))) : resolve(result)));
            });
          cache.keepVersion(version);
          const check = cache
            .getOrCompute(key, compute, ({ isAborted }) => !isAborted)
            .then(
              (result) => {
                const isForeign = result.isAborted && result.owner !== owner;
                if (result.key !== key || result.version < asked || isForeign)
                  faults.push(`seed ${seed}, request ${owner} of ${key} ${asked}: ${JSON.stringify(result)}`);
              },
              (error: Error) => {
                if (error.message !== String(owner)) faults.push(`seed ${seed}, request ${owner}: ${error.message}`);
              },
            );
          checks.push(check);
        } else if (kind < 8 && pending.length > 0) pending.splice(random.integers(pending.length), 1)[0]();
        else if (kind < 9) await new Promise(setImmediate);
        else version++;
      }
      const all = Promise.all(checks).then(() => true);
      while (!(await Promise.race([all, new Promise(setImmediate).then(() => false)]))) pending.pop()?.();
      await all;
    }
    expect(faults).toEqual([]);
  });

  it.each([
    ["sampled", 0.7],
    ["greedy", 0],
  ])(
    "gives %s completions the tokens that they have alone, whatever is canceled or changed",
    async (_, temperature) => {
      const model = await models.open({ config: { vocab_size: 320 }, scale: 1.5 });
      const settings: CompletionSettings = {
        sampling: { temperature, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
        trainedDistribution: "full",
        maxNewTokens: 5,
        stop: [],
        actionScoring: undefined,
        ignoreEos: false,
      };
      const constraints = [undefined, undefined, { choices: ["a", "b", "ab"] }];
      const ask = (sampler: CompletionSampler, kind: number, seed: number, signal?: AbortSignal) =>
        sampler.sample({
          prompt: [5, 6, kind],
          constraint: constraints[kind],
          random: new RandomStream(seed),
          signal,
        });
      for (let schedule = 0; schedule < 12; schedule++) {
        const random = new RandomStream(schedule);
        const sampler = new CompletionSampler(model, settings);
        const running: Promise<readonly [number, number, boolean, TurnCompletion]>[] = [];
        for (let step = 0; step < 20; step++) {
          const kind = random.integers(3);
          const seed = random.integers(3);
          const controller = random.integers(4) === 0 ? new AbortController() : undefined;
          running.push(
            ask(sampler, kind, seed, controller?.signal).then((result) => [
              kind,
              seed,
              controller !== undefined,
              result,
            ]),
          );
          if (random.integers(3) === 0) await running[random.integers(running.length)];
          controller?.abort();
        }
        const completed = (await Promise.all(running)).filter(([, , isCanceled]) => !isCanceled);
        for (const [kind, seed, , { tokens, finishReason }] of completed) {
          const alone = await ask(new CompletionSampler(model, settings), kind, seed);
          const found = { schedule, kind, seed, tokens, finishReason };
          expect(found).toMatchObject({ tokens: alone.tokens, finishReason: alone.finishReason });
        }
        await setTrainedValues(model, (i) => Math.sin(i + schedule));
      }
    },
  );
});
