import { describe, expect, it } from "vitest";
import { BullsAndCowsEnv, compareDigits } from "./bulls-and-cows.js";

const NUMBERS = Array.from({ length: 10_000 }, (_, i) => String(i).padStart(4, "0")).filter(
  (number) => new Set(number).size === 4,
);
const digits = (guess: string) => Int32Array.from(guess, Number);

describe("BullsAndCowsEnv", () => {
  it.each([
    ["1234", "1234", 4, 0],
    ["4321", "1234", 0, 4],
    ["1243", "1234", 2, 2],
    ["5678", "1234", 0, 0],
    ["1111", "1234", 1, 0],
    ["2211", "1234", 1, 1],
  ])("scores %s for %s with %i bulls and %i cows", (guess, secret, bulls, cows) => {
    expect(compareDigits(guess, secret)).toEqual({ bulls, cows });
  });

  it("is solved within 10 guesses by guesses consistent with all feedback", () => {
    const env = new BullsAndCowsEnv();
    let rewards = 0;
    for (let seed = 0; seed < 30; seed++) {
      env.reset({ seed });
      let possible = NUMBERS;
      for (;;) {
        const guess = possible[0];
        const { observation, reward, terminated } = env.step(digits(guess));
        rewards += reward;
        if (terminated) break;
        const [bulls, cows] = observation.split("\n").at(-1)?.slice(5).match(/\d/g)?.map(Number) ?? [];
        possible = possible.filter((secret) => {
          const answer = compareDigits(guess, secret);
          return answer.bulls === bulls && answer.cows === cows;
        });
      }
    }
    expect(rewards).toBe(30);
  });

  it("parses the last number of four digits", () => {
    const env = new BullsAndCowsEnv();
    expect(env.text.parseAction("Not 1234, but 5678.")).toEqual(digits("5678"));
    expect(env.text.parseAction("12345")).toBeUndefined();
  });
});
