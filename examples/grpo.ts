/** Prompts and reward functions, as with TRL's GRPOTrainer: `npm run example -- grpo [STEPS]`. */
import { AutoModelForCausalLM, getPeftModel, GrpoTrainer, type RewardFunction } from "llamagym";

/** A rule to be found out: stay from 17 on. */
const rows = Array.from({ length: 18 }, (_, i) => {
  const total = i + 4;
  return {
    prompt: [
      { role: "system", content: "Blackjack. Answer hit or stay." },
      { role: "user", content: `Your current total is ${total}. hit or stay?` },
    ],
    answer: total < 17 ? "hit" : "stay",
  };
});

/** The data set's other columns come under their names. */
const isRight: RewardFunction = ({ completions, answer }) =>
  completions.map((completion, i) => (completion.trim() === answer[i] ? 1 : 0));

const isShort: RewardFunction = ({ completionIds }) => completionIds.map((ids) => -ids.length);

const base = await AutoModelForCausalLM.fromPretrained("embedded");
const model = await getPeftModel(base, { r: 16, loraAlpha: 32, seed: 1 });
const trainer = new GrpoTrainer({
  model,
  rewardFuncs: [isRight, isShort],
  rewardWeights: [1, 0.01],
  trainDataset: rows,
  args: {
    maxSteps: Number(process.argv[2] ?? 60),
    // All eighteen prompts in each step, answered eight times.
    batchSize: 144,
    numGenerations: 8,
    numIterations: 4,
    maxCompletionLength: 8,
    learningRate: 2e-3,
    entropyCoef: 0.03,
    maxResamples: 0,
    seed: 1,
  },
});
await trainer.train({
  onStep: (step, { "rewards/isRight/mean": right, "completions/mean_length": length }) => {
    if (step % 10 === 0) console.log(`step ${step}: ${(100 * right).toFixed(0)} % right, ${length.toFixed(1)} tokens`);
  },
});

for (const { prompt, answer } of rows.filter((_, i) => i % 4 === 0)) {
  const { text } = await model.generate(prompt, { maxNewTokens: 8, temperature: 0 });
  console.log(`${prompt[1].content} -> ${text.trim()} (${answer})`);
}
await model.close();
