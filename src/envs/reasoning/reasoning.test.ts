import { describe, expect, it } from "vitest";
import { checkRewardFunction } from "../../rl/train/prompts/check-reward-function.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { make } from "../registry/make.js";
import { CurriculumWrapper } from "./curriculum.js";
import { createReasoningDataset, reasoningReward } from "./dataset.js";
import { ReasoningEnv } from "./reasoning.js";
import { drawItem, extractAnswer, REASONING_TASKS } from "./tasks.js";
import { verifyLetters } from "./verifiers.js";

// Recorded scores of Reasoning Gym are compared in test/parity/worlds.test.ts.

describe.each(REASONING_TASKS)("$name", (task) => {
  it("scores its own answers with 1 at every level, and other ones with less", () => {
    for (const level of task.levels.keys()) {
      const items = Array.from({ length: 30 }, (_, seed) => drawItem(task, level, new RandomStream(seed)));
      for (const item of items) expect(task.verify(item.answer, item)).toBeCloseTo(1, 12);
      const others = items.map((item, i) => [item, items[(i + 1) % items.length]] as const);
      const wrong = others.filter(([item, other]) => item.answer !== other.answer);
      expect(wrong.some(([item, other]) => task.verify(other.answer, item) < 1)).toBe(true);
      expect(task.verify(null, items[0])).toBeLessThanOrEqual(0.01);
    }
  });

  it("draws the same item from a seed, and different ones from others", () => {
    const questions = [3, 3, 4, 5, 6].map((seed) => drawItem(task, task.defaultLevel, new RandomStream(seed)).question);
    expect(questions[0]).toBe(questions[1]);
    expect(new Set(questions).size).toBeGreaterThan(2);
  });
});

describe("ReasoningEnv", () => {
  it("takes the last answer tag, and clamps scores to 1", () => {
    expect(extractAnswer("<answer>1</answer> no, <answer> 2 </answer>")).toBe("2");
    expect(extractAnswer(" 3\n")).toBe("3");
    const word = "abcdefghijklmnopqrstuvwxyz".slice(0, 6);
    expect(verifyLetters(`${word}x`, { answer: word, metadata: {} })).toBeLessThanOrEqual(1);
    const env = new ReasoningEnv({ task: "gcd" });
    env.reset({ seed: 1 });
    expect(env.step(` ${env.answer}\n`)).toMatchObject({ reward: 1, terminated: true });
  });

  it("tells wrong answers with their scores until the attempts are used up", () => {
    const env = new ReasoningEnv({ task: "countdown", attempts: 2 });
    env.reset({ seed: 1 });
    const first = env.step("1 + 1");
    expect(first).toMatchObject({ reward: 0, terminated: false });
    expect(first.observation.split("\n")[1]).toBe("Not right (score 0.05): 1 + 1");
    expect(env.step("nothing")).toMatchObject({ reward: 0.01, terminated: true });
  });

  it.each([
    [{ task: "chain_sums" }, /Did you mean "chain_sum"/],
    [{ level: 9 }, /levels 0 to 4, got 9/],
    [{ attempts: 0 }, /attempts must be/],
  ])("refuses %j", (options, message) => {
    expect(() => new ReasoningEnv(options)).toThrow(message);
  });
});

describe("CurriculumWrapper", () => {
  const play = (env: CurriculumWrapper<string, string>, inner: ReasoningEnv, isRight: boolean, episodes: number) => {
    for (let i = 0; i < episodes; i++) {
      void env.reset(i === 0 ? { seed: 1 } : {});
      void env.step(isRight ? inner.answer : "wrong");
    }
  };

  it("raises the level above the upper mean, and lowers it below the lower one", () => {
    const inner = new ReasoningEnv({ task: "chain_sum", level: 1 });
    const env = new CurriculumWrapper(inner, { episodes: 4 });
    play(env, inner, true, 4);
    expect(inner.level).toBe(2);
    play(env, inner, true, 3);
    expect(inner.level).toBe(2);
    play(env, inner, true, 30);
    expect(inner.level).toBe(inner.maxLevel);
    play(env, inner, false, 40);
    expect(inner.level).toBe(0);
  });

  it("saves the level and the returns at it", () => {
    const inner = new ReasoningEnv({ task: "gcd", level: 0 });
    const env = new CurriculumWrapper(inner, { episodes: 4 });
    play(env, inner, true, 3);
    const other = new ReasoningEnv({ task: "gcd", level: 2 });
    const restored = new CurriculumWrapper(other, { episodes: 4 });
    restored.setState(JSON.parse(JSON.stringify(env.getState())) as ReturnType<typeof env.getState>);
    expect(other.level).toBe(0);
    void restored.reset();
    void restored.step(other.answer);
    expect(other.level).toBe(1);
  });

  it("is an option of the registered tasks", () => {
    const env = make<string, string>("Reasoning-Gcd-v0", { curriculum: true, level: 0 });
    const inner = env.unwrapped as ReasoningEnv;
    for (let i = 0; i < 20; i++) {
      void env.reset();
      void env.step(inner.answer);
    }
    expect(inner.level).toBe(1);
    expect(() => make("Reasoning-Gcd-v0", { curriculum: 1 })).toThrow(/must be a boolean/);
  });
});

describe("createReasoningDataset", () => {
  it("creates rows whose completions reasoningReward scores", async () => {
    const rows = createReasoningDataset("chain_sum", { size: 5, seed: 3, level: 0 });
    expect(createReasoningDataset("chain_sum", { size: 5, seed: 3, level: 0 })).toEqual(rows);
    const columns = { answer: rows.map(({ answer }) => answer), metadata: rows.map(({ metadata }) => metadata) };
    const task = rows.map((row) => row.task);
    const completions = [...columns.answer.slice(0, 4).map((answer) => `So <answer>${answer}</answer>`), "?"];
    expect(reasoningReward({ completions, ...columns, task })).toEqual([1, 1, 1, 1, 0]);
    await checkRewardFunction(reasoningReward, { rows });
  });

  it("refuses sizes, levels and rows that do not fit", () => {
    expect(() => createReasoningDataset("gcd", { size: 0 })).toThrow(/size/);
    expect(() => createReasoningDataset("gcd", { level: 7 })).toThrow(/levels 0 to/);
    expect(() => reasoningReward({ completions: ["1"] })).toThrow(/columns task, answer and metadata/);
  });
});
