import { describe, expect, it } from "vitest";
import { LruCache, sizeByKey } from "./lru-cache.js";

describe("LruCache", () => {
  it("drops the least recently used value beyond its size", () => {
    const cache = new LruCache<number>(2);
    cache.set("a", 1);
    cache.set("b", 2);
    cache.get("a");
    cache.set("c", 3);
    expect(["a", "b", "c"].map((key) => cache.get(key))).toEqual([1, undefined, 3]);
  });

  it("counts the sizes of its values, and keeps the last one whatever its size", () => {
    const cache = new LruCache<number>(10, (key) => key.length);
    for (const key of ["aaaa", "bbbb", "bbbb", "cc"]) cache.set(key, 1);
    expect(cache.get("aaaa")).toBe(1);
    cache.set("d".repeat(20), 2);
    expect(["aaaa", "bbbb", "cc", "d".repeat(20)].map((key) => cache.get(key))).toEqual([
      undefined,
      undefined,
      undefined,
      2,
    ]);
  });
});

it("counts long keys by their length", () => {
  const cache = new LruCache<number>(10, sizeByKey);
  for (let i = 0; i < 10; i++) cache.set(`short ${i}`, i);
  expect(cache.get("short 0")).toBe(0);
  cache.set("x".repeat(9 * 1024), 1);
  expect([cache.get("short 0"), cache.get("short 9")]).toEqual([0, undefined]);
});
