/**
 * A language model scores replies, and another one learns from the scores: `npm run example --
 * judge [--episodes N] [--model MODEL] [--device DEVICE]`. JUDGE_URL and JUDGE_MODEL name the judge
 * at an OpenAI-compatible URL, with OPENAI_API_KEY; without them, the embedded model judges, whose
 * scores mean nothing.
 */
import { AutoModelForCausalLM, getPeftModel, GrpoTrainer } from "llamagym";
import { judge } from "llamagym/runs";
import { parseOptions } from "./options.js";

/** Completions of a step: eight to each of the four prompts. */
const BATCH_SIZE = 32;

const trainDataset = ["The shop is closed.", "The train is late.", "Your order is lost.", "We have no table."].map(
  (news) => ({ prompt: `Tell a customer politely: ${news}` }),
);

const { episodes, model: name, device, isEmbedded } = parseOptions({ episodes: 20 * BATCH_SIZE });
const { JUDGE_URL: baseURL, JUDGE_MODEL: judgeName = "gpt-5-mini" } = process.env;
const polite = judge({
  baseURL,
  model: baseURL === undefined ? await AutoModelForCausalLM.fromPretrained("embedded", { device }) : judgeName,
  rubric: "Is the last message polite, and does it say what happened? 0 is neither, 10 is both.",
  onWarning: console.warn,
});
const base = await AutoModelForCausalLM.fromPretrained(name, { device });
const model = await getPeftModel(base, { r: 16, seed: 1 });
const trainer = new GrpoTrainer({
  model,
  rewardFuncs: polite,
  trainDataset,
  args: {
    maxSteps: Math.ceil(episodes / BATCH_SIZE),
    batchSize: BATCH_SIZE,
    numGenerations: 8,
    maxCompletionLength: 24,
    learningRate: isEmbedded ? 2e-3 : 1e-4,
    maxResamples: 0,
    seed: 1,
  },
});
await trainer.train({
  onStep: (step, { "judge/score_mean": score = 0, "judge/calls": calls = 0, "judge/failures": failures = 0 }) =>
    console.log(`step ${step}: mean score ${score.toFixed(2)}, ${calls} requests, ${failures} failures`),
});
await model.close();
