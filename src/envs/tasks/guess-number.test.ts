import { describe, expect, it } from "vitest";
import { GuessNumberEnv } from "./guess-number.js";

describe("GuessNumberEnv", () => {
  it("is always solved by halving, since 7 guesses distinguish 2^7 - 1 numbers", () => {
    const env = new GuessNumberEnv();
    for (let seed = 0; seed < 300; seed++) {
      let [low, high] = env.reset({ seed }).observation;
      let result;
      do {
        result = env.step((low + high) >> 1);
        [low, high] = result.observation;
      } while (!result.terminated);
      expect(result.reward).toBe(1);
    }
  });

  it("narrows the bounds by the feedback, and ends after the last guess", () => {
    const env = new GuessNumberEnv({ highest: 10, guesses: 3 });
    const secrets = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].filter((guess) => {
      env.reset({ seed: 5 });
      return env.step(guess).reward === 1;
    });
    expect(secrets).toHaveLength(1);
    const [secret] = secrets;
    env.reset({ seed: 5 });
    const wrong = secret === 10 ? 1 : 10;
    const [low, high, left] = env.step(wrong).observation;
    expect([low, high, left]).toEqual(wrong === 10 ? [1, 9, 2] : [2, 10, 2]);
    expect(Array.from(env.step(wrong).observation)).toEqual([low, high, 1]);
    expect(env.step(wrong)).toMatchObject({ terminated: true, reward: 0 });
  });

  it("parses the last number of a completion if it is in range", () => {
    const { text } = new GuessNumberEnv();
    expect(text.parseAction("Between 1 and 50, so 25.")).toBe(25);
    expect(text.parseAction("101")).toBeUndefined();
    expect(text.formatObservation(Int32Array.of(3, 9, 1), {})).toBe(
      "The number is between 3 and 9. 1 guess left. What is your guess?",
    );
  });
});
