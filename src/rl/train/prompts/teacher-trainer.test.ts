import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../../test/support/random-model.js";
import { AutoModelForCausalLM, getPeftModel } from "../../../generation/index.js";
import type { LanguageModel } from "../../../generation/language-model.js";
import type { ChatMessage } from "../../../models/text/index.js";
import type { Turn } from "../../rollout/trajectory.js";
import { PromptRenderer } from "../../rollout/prompt-renderer.js";
import { GrpoTrainer, RlooTrainer, type GrpoTrainerOptions } from "./grpo-trainer.js";

let base: LanguageModel;
let other: LanguageModel;
const files: Awaited<ReturnType<typeof writeRandomModel>>[] = [];
beforeAll(async () => {
  const open = async (options: object) => {
    files.push(await writeRandomModel({ maxPositions: 128, ...options }));
    return AutoModelForCausalLM.fromPretrained(files.at(-1)!.folder, { device: "cpu", threads: 1 });
  };
  [base, other] = [await open({ scale: 0.3 }), await open({ scale: 0.6 })];
});
afterAll(async () => {
  await Promise.all([base.close(), other.close()]);
  await Promise.all(files.map(async ({ remove }) => remove()));
});

const args = { batchSize: 32, numGenerations: 4, maxCompletionLength: 4, maxSteps: 40, learningRate: 0.01 } as const;
const question = (content: string): ChatMessage[] => [{ role: "user", content }];
const dataset = ["one", "two", "three", "four"].map((word) => ({ prompt: question(word) }));

async function train(options: Partial<GrpoTrainerOptions>) {
  const logs: Readonly<Record<string, number>>[] = [];
  const model = await getPeftModel(base, { r: 8, seed: 1 });
  const trainer = new GrpoTrainer({ model, trainDataset: dataset, args, onWarning: () => {}, ...options });
  await trainer.train({ onStep: (_, metrics) => void logs.push(metrics) });
  return logs;
}

describe("a teacher of prompts", () => {
  it("lowers the divergence per token without reward functions", async () => {
    const logs = await train({ teacher: { model: other } });
    const kl = (rows: typeof logs) => rows.reduce((sum, metrics) => sum + metrics["teacher/kl"], 0) / rows.length;
    expect(kl(logs.slice(0, 5))).toBeGreaterThan(1);
    expect(kl(logs.slice(-5))).toBeLessThan(0.8 * kl(logs.slice(0, 5)));
    expect(logs[0]).not.toHaveProperty("rewards/frac_unscored");
  });

  it("sees its hint in the system message and a row's hint behind the question", async () => {
    const turns: Turn[] = [];
    const model = {
      score: async (scored: readonly Turn[]) => {
        turns.push(...scored);
        return scored.map(({ logProbs }) => Float64Array.from(logProbs));
      },
      release: async () => {},
    };
    const prompt: ChatMessage[] = [...question("one"), { role: "assistant", content: "It" }];
    const rows = [{ prompt, hint: "Say uno." }, { prompt: question("two") }];
    await train({ teacher: { model }, trainDataset: rows, args: { ...args, batchSize: 8, maxSteps: 1 } });
    const renderer = new PromptRenderer(base.tokenizer);
    const hinted = renderer.encodeMessages([...question("one\n\nSay uno."), prompt[1]]);
    const teacherPrompts = turns.map(({ teacherPrompt }) => teacherPrompt);
    expect(teacherPrompts.filter((tokens) => tokens !== undefined)).toEqual([hinted, hinted, hinted, hinted]);
    expect(turns).toHaveLength(8);
  });

  it("is the model itself with hints, which is scored behind the hinted prompts", async () => {
    const completions: string[] = [];
    const rows = [{ prompt: question("one"), hint: "Say uno.", answer: 1 }];
    const [first] = await train({
      teacher: { model: "self", hint: "Be brief." },
      trainDataset: rows,
      args: { ...args, batchSize: 4, maxSteps: 1, temperature: 1 },
      rewardFuncs: ({ completionIds, answer }) => {
        completions.push(...completionIds.map((ids) => ids.join()));
        return answer as number[];
      },
    });
    const hinted = [{ role: "system", content: "Be brief." }, ...question("one\n\nSay uno.")] as ChatMessage[];
    const tokens = completions.map((text) => text.split(",").map(Number));
    const scores = await base.score(hinted, tokens);
    const flat = scores.flatMap(({ tokenLogProbs }) => [...tokenLogProbs]);
    expect(first["teacher/logps"]).toBeCloseTo(flat.reduce((sum, value) => sum + value, 0) / flat.length, 4);
    expect(first.reward).toBe(1);
  });

  it.each<[string, Partial<GrpoTrainerOptions>, RegExp]>([
    ["itself without hints", { teacher: { model: "self" } }, /needs hints.*column `hint`/],
    [
      "hints for a text",
      { teacher: { model: "self", hint: "a" }, trainDataset: [{ prompt: "one" }] },
      /row 0 of trainDataset: a teacher's hint needs a prompt of messages/,
    ],
    [
      "a hint that is no text",
      { teacher: { model: "self" }, trainDataset: [{ prompt: question("one"), hint: 4 }] },
      /row 0 of trainDataset: "hint", which only the teacher sees, must be a text, got 4/,
    ],
    [
      "a hint without a question",
      { teacher: { model: "self" }, trainDataset: [{ prompt: [{ role: "system", content: "a" }], hint: "b" }] },
      /row 0 of trainDataset: the column "hint" needs a message of the user/,
    ],
  ])("is refused: %s", async (_, options, message) => {
    await expect(train(options)).rejects.toThrow(message);
  });

  it("is refused by RLOO, and reward functions are required without it", () => {
    const create = (options: object) => new RlooTrainer({ model: base, trainDataset: dataset, ...options });
    expect(() => create({ teacher: { model: other } })).toThrow(/one advantage per completion.*Use grpo/);
    expect(() => create({})).toThrow(/RlooTrainer needs rewardFuncs/);
    const weighted = { model: base, trainDataset: dataset, teacher: { model: other }, rewardWeights: [1] };
    expect(() => new GrpoTrainer(weighted)).toThrow(/`rewardWeights` needs rewardFuncs/);
  });
});
