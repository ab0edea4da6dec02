/**
 * Makes the embedded model: `npm run embedded-model [-- --output FOLDER --seed N --steps N
 * --threads N]`. Repeat the command to resume an interrupted run from its newest checkpoint.
 */
import { existsSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { SftExample, SftMetrics } from "../../src/rl/algorithms/sft/index.js";
import { AutoModelForCausalLM } from "../../src/generation/auto-model.js";
import { makeTrainable } from "../../src/models/adapters/get-peft-model.js";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { SftTrainer } from "../../src/rl/train/sft-trainer.js";
import { toMessages } from "./corpus/conversation.js";
import { Corpus } from "./corpus/corpus.js";
import { separateTokens } from "./separate.js";
import { MODEL_SIZE, TOKENIZER_SIZE, TRAINING } from "./settings.js";
import { writeUntrainedModel } from "./start.js";
import { trainTokenizer } from "./tokenizer.js";

/** A stage of the training. */
interface Stage {
  readonly number: number;
  readonly steps: number;
  readonly learningRate: number;
  /** Contains its checkpoints and its result. */
  readonly folder: string;
}

const { values } = parseArgs({
  options: {
    output: { type: "string", default: "models/llamagym-1m" },
    /** Folder of the run, deleted at its end. */
    run: { type: "string", default: "runs/embedded-model" },
    seed: { type: "string", default: String(TRAINING.seed) },
    steps: { type: "string", default: String(TRAINING.steps) },
    threads: { type: "string", default: "2" },
  },
});
const [seed, steps, threads] = [values.seed, values.steps, values.threads].map(Number);

/** Random streams; children of the seed. */
const [TOKENIZER_STREAM, WEIGHTS_STREAM, BATCH_STREAM, SEPARATION_STREAM] = [1, 2, 3, 4];

const corpus = new Corpus();
let modelFolder = join(values.run, "start");
if (!existsSync(modelFolder)) await writeInitialModel(modelFolder);
for (const [number, { share, learningRate }] of TRAINING.stages.entries()) {
  const stage = {
    number,
    steps: Math.ceil(steps * share),
    learningRate,
    folder: join(values.run, `stage-${number + 1}`),
  };
  const result = join(stage.folder, "model");
  if (!existsSync(result)) await train(stage, modelFolder, result);
  modelFolder = result;
}
await cp(modelFolder, values.output, { recursive: true });
const separated = await separateTokens(values.output, new RandomStream(seed, [SEPARATION_STREAM]));
console.log(`${separated.length} tokens were separated.`);
await rm(values.run, { recursive: true });
console.log(`The model is in ${values.output}.`);

/** Writes a model with random weights and a tokenizer trained on the corpus. */
async function writeInitialModel(folder: string): Promise<void> {
  const random = new RandomStream(seed, [TOKENIZER_STREAM]);
  const texts: string[] = [];
  for (let i = 0; i < TRAINING.tokenizerDraws; i++) {
    for (const conversation of corpus.draw(random, i / TRAINING.tokenizerDraws))
      for (const { content } of toMessages(conversation)) texts.push(content as string);
  }
  const size = { ...MODEL_SIZE, ...TOKENIZER_SIZE };
  const weights = new RandomStream(seed, [WEIGHTS_STREAM]);
  const parameters = await writeUntrainedModel(folder, size, trainTokenizer(texts, TOKENIZER_SIZE), weights);
  console.log(`${parameters} parameters`);
}

/** Trains the model of one folder and saves it to another. */
async function train(stage: Stage, from: string, to: string): Promise<void> {
  const base = await AutoModelForCausalLM.fromPretrained(from, { device: "cpu", threads });
  const model = base.withCausalLM(await makeTrainable(base.causalLM));
  const { lrSchedulerType, warmupSteps, weightDecay, beta2, maxGradNorm, logEvery, saveSteps } = TRAINING;
  const { learningRate, steps: maxSteps } = stage;
  const trainer = await SftTrainer.create(model, {
    train: (step) => batch(stage, step),
    learningRate,
    lrSchedulerType,
    warmupSteps,
    maxSteps,
    weightDecay,
    beta2,
    maxGradNorm,
  });
  const checkpointDir = join(stage.folder, "checkpoints");
  const resumedAt = await trainer.resume(checkpointDir);
  if (resumedAt > 0) console.log(`Resuming ${stage.folder} after ${resumedAt} updates.`);
  const start = performance.now();
  let loss = 0;
  let accuracy = 0;
  const onStep = (metrics: SftMetrics) => {
    loss += metrics.loss / logEvery;
    accuracy += (metrics.mean_token_accuracy ?? NaN) / logEvery;
    if (metrics.step % logEvery !== 0) return;
    const seconds = Math.round((performance.now() - start) / 1000);
    console.log(`${metrics.step}/${maxSteps} loss ${loss.toFixed(3)} accuracy ${accuracy.toFixed(3)} ${seconds} s`);
    [loss, accuracy] = [0, 0];
  };
  await trainer.train({ checkpointDir, saveSteps, onStep });
  await model.savePretrained(to);
  await model.close();
}

/** Draws the examples of an update, which depend only on the seed and the update's index. */
function batch({ number, steps: all }: Stage, step: number): SftExample[] {
  const random = new RandomStream(seed, number === 0 ? [BATCH_STREAM, step] : [BATCH_STREAM, step, number]);
  const examples: SftExample[] = [];
  while (examples.length < TRAINING.batchSize) {
    for (const conversation of corpus.draw(random, number + step / all))
      examples.push({ messages: toMessages(conversation) });
  }
  return examples;
}
