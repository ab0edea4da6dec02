import { describe, expect, it } from "vitest";
import { LruCache } from "./lru-cache.js";
import { getOrCreatePromise } from "./promise-cache.js";
import { RandomStream } from "./random/random-stream.js";

const SCHEDULES = 200;
const KEYS = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"];

/** What an `LruCache` must hold: keys and values, the least recently used first. */
class Model {
  entries: [string, number][] = [];

  constructor(
    private readonly maxSize: number,
    private readonly sizeOf: (key: string) => number,
  ) {}

  get(key: string): number | undefined {
    const entry = this.entries.find(([name]) => name === key);
    if (entry !== undefined) this.entries = [...this.entries.filter((each) => each !== entry), entry];
    return entry?.[1];
  }

  set(key: string, value: number): void {
    this.entries = [...this.entries.filter(([name]) => name !== key), [key, value]];
    const size = () => this.entries.reduce((sum, [name]) => sum + this.sizeOf(name), 0);
    while (size() > this.maxSize && this.entries.length > 1) this.entries.shift();
  }
}

describe("random operations", () => {
  it.each([
    ["equal sizes", () => 1],
    ["sizes of keys", (key: string) => key.length],
  ])("leave in a cache of %s what the model holds", (_, sizeOf) => {
    const differences: string[] = [];
    for (let seed = 0; seed < SCHEDULES; seed++) {
      const random = new RandomStream(seed);
      const maxSize = 1 + random.integers(8);
      const [cache, model] = [new LruCache<number>(maxSize, sizeOf), new Model(maxSize, sizeOf)];
      for (let step = 0; step < 60; step++) {
        const key = random.choice(KEYS);
        const kind = random.integers(10);
        const check = (found: number | undefined, expected: number | undefined) => {
          if (found !== expected) differences.push(`seed ${seed}, step ${step}: ${found}, not ${expected}`);
        };
        if (kind < 4) check(cache.get(key), model.get(key));
        else if (kind < 7) {
          cache.set(key, step);
          model.set(key, step);
        } else if (kind < 8) {
          cache.delete(key);
          model.entries = model.entries.filter(([name]) => name !== key);
        } else if (kind < 9) {
          const known = model.get(key);
          check(
            cache.getOrCreate(key, () => step),
            known ?? step,
          );
          if (known === undefined) model.set(key, step);
        } else if (random.integers(10) === 0) {
          cache.clear();
          model.entries = [];
        }
      }
      for (const [key, value] of model.entries)
        if (cache.get(key) !== value) differences.push(`seed ${seed}: ${key} is not ${value} at the end`);
    }
    expect(differences).toEqual([]);
  });

  it("of promises settle each, keep no rejected one, and give every key its own value", async () => {
    for (let seed = 0; seed < SCHEDULES; seed++) {
      const random = new RandomStream(seed);
      const cache = random.integers(2) === 0 ? new Map<string, Promise<string>>() : new LruCache<Promise<string>>(3);
      const pending: (() => void)[] = [];
      const create = (key: string) => () =>
        new Promise<string>((resolve, reject) => {
          const fails = random.integers(3) === 0;
          pending.push(() => (fails ? reject(new Error(key)) : resolve(key)));
        });
      const asked: Promise<unknown>[] = [];
      for (let step = 0; step < 60; step++) {
        const key = random.choice(KEYS);
        const kind = random.integers(8);
        if (kind < 5)
          asked.push(
            getOrCreatePromise(cache, key, create(key)).then(
              (value) => value === key,
              (error: Error) => error.message === key,
            ),
          );
        else if (kind < 7 && pending.length > 0) pending.splice(random.integers(pending.length), 1)[0]();
        else await Promise.resolve();
      }
      for (const settle of pending) settle();
      expect(new Set(await Promise.all(asked))).toEqual(new Set([true]));
      for (const key of KEYS) expect(await (cache.get(key) ?? key)).toBe(key);
    }
  });
});
