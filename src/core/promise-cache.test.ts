import { describe, expect, it, vi } from "vitest";

import { LruCache } from "./lru-cache.js";
import { LazyPromise, getOrCreatePromise } from "./promise-cache.js";

const failOnce = (value: number) =>
  vi.fn<() => Promise<number>>().mockRejectedValueOnce(new Error("once")).mockResolvedValue(value);

describe.each([
  ["a map", () => new Map<string, Promise<number>>()],
  ["a cache of limited size", () => new LruCache<Promise<number>>(10)],
])("promises in %s", (_, createCache) => {
  it("are created once, and again after a failure", async () => {
    const cache = createCache();
    const create = failOnce(1);
    const both = [getOrCreatePromise(cache, "a", create), getOrCreatePromise(cache, "a", create)];
    await expect(Promise.allSettled(both)).resolves.toMatchObject([{ status: "rejected" }, { status: "rejected" }]);
    await expect(getOrCreatePromise(cache, "a", create)).resolves.toBe(1);
    await expect(getOrCreatePromise(cache, "a", create)).resolves.toBe(1);
    expect(create).toHaveBeenCalledTimes(2);
  });

  it("stay if they replaced a failed one", async () => {
    const cache = createCache();
    const failing = getOrCreatePromise(cache, "a", () => Promise.reject(new Error("once")));
    cache.set("a", Promise.resolve(2));
    await expect(failing).rejects.toThrow("once");
    await expect(cache.get("a")).resolves.toBe(2);
  });
});

it("a lazy promise is created when it is asked for, and again after a failure", async () => {
  const create = failOnce(1);
  const lazy = new LazyPromise(create);
  expect(lazy.peek()).toBeUndefined();
  await expect(lazy.get()).rejects.toThrow("once");
  expect(lazy.peek()).toBeUndefined();
  await expect(lazy.get()).resolves.toBe(1);
  await expect(lazy.peek()).resolves.toBe(1);
});
