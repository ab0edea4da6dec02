import { describe, expect, it } from "vitest";
import { RandomStream } from "../../core/random/random-stream.js";
import { findHiddenStateLag, type ObservedTurn } from "./hidden-state.js";

/**
 * Plays episodes of `length` turns, in each of which `play` returns the prompt and the outcome of
 * an action.
 */
function playEpisodes(
  length: number,
  play: (history: readonly string[], random: RandomStream) => Pick<ObservedTurn, "prompt" | "outcome">,
  episodes = 100,
): ObservedTurn[][] {
  const random = new RandomStream(1);
  return Array.from({ length: episodes }, () => {
    const turns: ObservedTurn[] = [];
    for (let i = 0; i < length; i++) {
      const history = turns.map(({ prompt }) => prompt);
      turns.push({ ...play(history, random), action: random.choice(["a", "b"]) });
    }
    return turns;
  });
}

describe("findHiddenStateLag", () => {
  it("finds the turn whose observation decides the reward", () => {
    const episodes = playEpisodes(4, (history, random) =>
      history.length === 0
        ? { prompt: random.choice(["north", "south", "west"]), outcome: "0" }
        : { prompt: `mile ${history.length}`, outcome: history.length === 3 ? `reward ${history[0]}` : "0" },
    );
    expect(findHiddenStateLag(episodes)).toBe(3);
  });

  it.each([
    ["that is random", (random: RandomStream) => String(random.integers(0, 3))],
    ["that never recurs", (random: RandomStream) => String(random.random())],
    ["that is constant", () => "0"],
    ["that is unknown", () => undefined],
  ])("finds nothing behind an outcome %s", (_, outcome) => {
    for (let length = 2; length < 12; length++) {
      const episodes = playEpisodes(length, (__, random) => ({
        prompt: random.choice(["x", "y", "z"]),
        outcome: outcome(random),
      }));
      expect(findHiddenStateLag(episodes)).toBeUndefined();
    }
  });

  it("finds nothing in a Markov chain whose states are observed", () => {
    const episodes = playEpisodes(30, (history, random) => {
      const previous = Number(history.at(-1) ?? 0);
      return { prompt: String((previous + random.integers(0, 2)) % 5), outcome: String(random.integers(0, 2)) };
    });
    const followed = episodes.map((turns) =>
      turns.map((turn, i) => ({ ...turn, outcome: turns[i + 1]?.prompt ?? turn.outcome })),
    );
    expect(findHiddenStateLag(followed)).toBeUndefined();
  });

  it("finds nothing in no episodes", () => {
    expect(findHiddenStateLag([])).toBeUndefined();
  });
});
