import { describe, expect, it } from "vitest";
import { calculate, CalculatorEnv } from "./calculator.js";

describe("calculate", () => {
  it.each([
    ["2 + 3 * 4", 14],
    ["(2 + 3) * 4", 20],
    ["-3 - -4", 1],
    ["100 / 8 / 5", 2.5],
    ["10 - 2 - 3", 5],
    ["2*(3+(4-1))*1.5", 18],
  ])("evaluates %s to %d", (expression, value) => {
    expect(calculate(expression)).toEqual({ value });
  });

  it.each(["", "2 +", "2 3", "(2", "2)", "two", "1 / 0", "process.exit()", "(".repeat(200)])(
    "explains what is wrong with %j",
    (expression) => {
      expect(calculate(expression)).toHaveProperty("problem");
    },
  );
});

describe("CalculatorEnv", () => {
  it("rewards the right answer after a calculation", () => {
    const env = new CalculatorEnv({ operations: 3, highest: 99 });
    for (let seed = 0; seed < 50; seed++) {
      const { observation } = env.reset({ seed });
      const question = /What is (.*)\?/.exec(observation)?.[1] ?? "";
      const told = env.step(`calculate ${question}`);
      expect(told).toMatchObject({ reward: 0, terminated: false });
      const value = told.observation.split(" = ").at(-1);
      expect(env.step(`answer ${value}`)).toMatchObject({ reward: 1, terminated: true });
    }
  });

  it("gives no reward for a wrong or missing answer, and returns a usage hint", () => {
    const env = new CalculatorEnv({ turns: 2 });
    env.reset({ seed: 1 });
    expect(env.step("answer 0.5")).toMatchObject({ reward: 0, terminated: true });
    env.reset({ seed: 1 });
    expect(env.step("what now").observation).toContain("Say calculate and an expression");
    expect(env.step("calculate 1 / 0")).toMatchObject({ reward: 0, terminated: true });
  });

  it("parses the last line that is a command", () => {
    const { text } = new CalculatorEnv();
    expect(text.parseAction("Let me think.\nCalculate 3 * 4")).toBe("Calculate 3 * 4");
    expect(text.parseAction("calculate 1+1\nanswer 2")).toBe("answer 2");
    expect(text.parseAction("Action: answer 1,234")).toBe("answer 1,234");
    expect(text.parseAction("I do not know.\nSorry.")).toBeUndefined();
  });
});
