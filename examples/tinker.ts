// Trains an 8B model to solve sums by GRPO on a Tinker service, which needs its address and a key.
// TINKER_BASE_URL=https://... TINKER_API_KEY=tml-... npm run example tinker Without a key: npx
// llamagym serve --tinker -m embedded, and MODEL=embedded TINKER_BASE_URL=http://127.0.0.1:8080
import { GrpoTrainer, type RewardFunction } from "llamagym";
import { openTinkerModel } from "llamagym/runs";

const { TINKER_BASE_URL: baseUrl, MODEL = "Qwen/Qwen3-8B" } = process.env;
if (baseUrl === undefined) {
  console.log("Set TINKER_BASE_URL to the address of a Tinker service, and TINKER_API_KEY to your key.");
} else {
  const trainDataset = Array.from({ length: 64 }, (_, i) => {
    const [a, b] = [17 + ((i * 31) % 83), 11 + ((i * 47) % 79)];
    return { prompt: [{ role: "user", content: `${a} + ${b} = ? Answer with the number.` }], answer: String(a + b) };
  });
  const isRight: RewardFunction = ({ completions, answer }) =>
    completions.map((completion, i) => (completion.includes(String(answer?.[i])) ? 1 : 0));

  const model = await openTinkerModel(MODEL, { baseUrl, rank: 32 });
  const trainer = new GrpoTrainer({
    model,
    rewardFuncs: isRight,
    trainDataset,
    args: { maxSteps: 4, batchSize: 32, numGenerations: 8, maxCompletionLength: 16, learningRate: 1e-4, beta: 0 },
  });
  await trainer.train({
    onStep: (step, metrics) => console.log(step, metrics.reward, metrics["service/tokens_trained"]),
  });
  await model.close();
}
