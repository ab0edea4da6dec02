import { describe, expect, it } from "vitest";
import { scoreGuess, WORDLE_WORDS, WordleEnv } from "./wordle.js";

const letters = (word: string) => Int32Array.from(word, (letter) => letter.charCodeAt(0) - 97);

describe("WordleEnv", () => {
  it.each([
    ["crane", "crane", "ggggg"],
    ["speed", "abide", "--y-y"],
    ["speed", "erase", "y-yy-"],
    ["speed", "steal", "g-g--"],
    ["speed", "crepe", "-ygy-"],
    ["allay", "label", "yyy--"],
    ["eerie", "where", "y-y-g"],
  ])("marks %s for %s as %s", (guess, secret, marks) => {
    expect(scoreGuess(guess, secret)).toBe(marks);
  });

  it("has words of five letters, each once", () => {
    expect(WORDLE_WORDS.every((word) => /^[a-z]{5}$/.test(word))).toBe(true);
    expect(new Set(WORDLE_WORDS).size).toBe(WORDLE_WORDS.length);
  });

  it("is nearly always solved by words consistent with all marks", () => {
    const env = new WordleEnv();
    let won = 0;
    for (let seed = 0; seed < 200; seed++) {
      env.reset({ seed });
      let possible: readonly string[] = WORDLE_WORDS;
      for (;;) {
        const guess = possible[possible.length >> 1];
        const { observation, reward, terminated } = env.step(letters(guess));
        won += reward;
        if (terminated) break;
        const marks = observation.split("\n").at(-1)?.slice(6);
        possible = possible.filter((word) => scoreGuess(guess, word) === marks);
      }
    }
    expect(won).toBeGreaterThan(190);
  });

  it("parses the last word of five letters, and formats guesses as words", () => {
    const env = new WordleEnv();
    env.reset({ seed: 1 });
    const { observation, info } = env.step(letters("crane"));
    expect(observation).toMatch(/^crane [gy-]{5}$/);
    expect(env.text.formatObservation(observation, info)).toMatch(/^crane .{5}\n5 guesses left/);
    expect(env.text.parseAction("My guess is STONE.", observation, info)).toEqual(letters("stone"));
    expect(env.text.parseAction("cat", observation, info)).toBeUndefined();
  });
});
