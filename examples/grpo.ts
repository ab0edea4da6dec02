/**
 * Prompts and reward functions, as with TRL's GRPOTrainer: `npm run example -- grpo [--episodes N]
 * [--model MODEL] [--device DEVICE]`. An episode is one completion; a step takes 144 of them.
 */
import { AutoModelForCausalLM, getPeftModel, GrpoTrainer, type RewardFunction } from "llamagym";
import { parseOptions } from "./options.js";

/** Completions of a step: eight to each of the eighteen prompts. */
const BATCH_SIZE = 144;

/** The rule to learn: stay from 17 on. */
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

/** Other columns of the data set are passed under their names. */
const isRight: RewardFunction = ({ completions, answer }) =>
  completions.map((completion, i) => (completion.trim() === answer?.[i] ? 1 : 0));

const isShort: RewardFunction = ({ completionIds }) => completionIds.map((ids) => -ids.length);

const { episodes, model: name, device, isEmbedded } = parseOptions({ episodes: 60 * BATCH_SIZE });
const base = await AutoModelForCausalLM.fromPretrained(name, { device });
const model = await getPeftModel(base, { r: 16, loraAlpha: 32, seed: 1 });
const trainer = new GrpoTrainer({
  model,
  rewardFuncs: [isRight, isShort],
  rewardWeights: [1, 0.01],
  trainDataset: rows,
  args: {
    maxSteps: Math.ceil(episodes / BATCH_SIZE),
    batchSize: BATCH_SIZE,
    numGenerations: 8,
    numIterations: 4,
    maxCompletionLength: 8,
    learningRate: isEmbedded ? 2e-3 : 1e-4,
    entropyCoef: 0.03,
    maxResamples: 0,
    seed: 1,
  },
});
await trainer.train({
  onStep: (step, { "rewards/isRight/mean": right = 0, "completions/mean_length": length = 0 }) => {
    if (step === 1 || step % 10 === 0)
      console.log(`step ${step}: ${(100 * right).toFixed(0)} % right, ${length.toFixed(1)} tokens`);
  },
});

for (const { prompt, answer } of rows.filter((_, i) => i % 4 === 0)) {
  const { text } = await model.generate(prompt, { maxNewTokens: 8, temperature: 0 });
  console.log(`${prompt[1]!.content} -> ${text.trim()} (${answer})`);
}
await model.close();
