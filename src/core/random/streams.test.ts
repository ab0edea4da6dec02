import { describe, expect, it } from "vitest";
import { RandomStream } from "./random-stream.js";
import { stream, STREAMS } from "./streams.js";

describe("STREAMS", () => {
  it("gives no two streams the same number and count of indices", () => {
    const keys = Object.values(STREAMS).map(String);
    expect(new Set(keys).size).toBe(keys.length);
  });
});

it("stream returns the spawned stream of a seed", () => {
  expect(stream(3, "rollout", 5).random()).toBe(new RandomStream(3, [2, 5]).random());
  expect(stream(3, "learner").random()).toBe(new RandomStream(3, [1]).random());
});
