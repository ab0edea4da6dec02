/**
 * Makes the embedded model: `npm run embedded-model [-- --output FOLDER --seed N --steps N --threads N]`. A run that was
 * stopped goes on from its newest checkpoint when the command is given again.
 */
import { existsSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SftTrainer, type SftExample, type SftState } from "../../src/rl/algorithms/sft/index.js";
import { AutoModelForCausalLM } from "../../src/generation/auto-model.js";
import { makeTrainable } from "../../src/models/adapters/get-peft-model.js";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { findLatestCheckpoint, readCheckpoint, writeCheckpoint } from "../../src/rl/train/checkpoint-folder.js";
import { toMessages } from "./corpus/conversation.js";
import { Corpus } from "./corpus/corpus.js";
import { MODEL_SIZE, TOKENIZER_SIZE, TRAINING } from "./settings.js";
import { writeUntrainedModel } from "./start.js";
import { trainTokenizer } from "./tokenizer.js";

/** A part of the training. */
interface Stage {
  readonly number: number;
  readonly steps: number;
  readonly learningRate: number;
  /** Where its checkpoints and its result are. */
  readonly folder: string;
}

const { values } = parseArgs({
  options: {
    output: { type: "string", default: "models/llamagym-1m" },
    /** Where the run is kept until it is done. */
    run: { type: "string", default: "runs/embedded-model" },
    seed: { type: "string", default: String(TRAINING.seed) },
    steps: { type: "string", default: String(TRAINING.steps) },
    threads: { type: "string", default: "2" },
  },
});
const [seed, steps, threads] = [values.seed, values.steps, values.threads].map(Number);

/** Random streams by what they decide; each is a child of the seed. */
const [TOKENIZER_STREAM, WEIGHTS_STREAM, BATCH_STREAM] = [1, 2, 3];

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
await rm(values.run, { recursive: true });
console.log(`The model is in ${values.output}.`);

/** A model with random weights, and a tokenizer for the corpus. */
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
  const schedule = { learningRate, lrSchedulerType, warmupSteps, maxSteps };
  const trainer = await SftTrainer.create(model, { ...schedule, weightDecay, beta2, maxGradNorm });
  const checkpoints = join(stage.folder, "checkpoints");
  const newest = await findLatestCheckpoint(checkpoints);
  if (newest !== undefined) {
    const { optimizer, state } = await readCheckpoint<Omit<SftState, "optimizer">>(newest);
    await model.loadTrainedValues(newest);
    await trainer.setState({ ...state, optimizer });
    console.log(`Going on with ${stage.folder} after ${trainer.step} updates.`);
  }
  const began = performance.now();
  let loss = 0;
  let accuracy = 0;
  while (trainer.step < maxSteps) {
    const stats = await trainer.update(batch(stage, trainer.step));
    loss += stats.loss / logEvery;
    accuracy += stats.mean_token_accuracy / logEvery;
    if (stats.step % logEvery === 0) {
      const seconds = Math.round((performance.now() - began) / 1000);
      console.log(`${stats.step}/${maxSteps} loss ${loss.toFixed(3)} accuracy ${accuracy.toFixed(3)} ${seconds} s`);
      [loss, accuracy] = [0, 0];
    }
    if (stats.step % saveSteps === 0) {
      const { optimizer, ...state } = await trainer.getState();
      await writeCheckpoint(checkpoints, trainer.step, { optimizer, state }, async (folder) =>
        model.savePretrained(folder),
      );
    }
  }
  await model.savePretrained(to);
  await model.close();
}

/** The examples of an update, which follow from the seed and the update's number alone. */
function batch({ number, steps: all }: Stage, step: number): SftExample[] {
  const random = new RandomStream(seed, number === 0 ? [BATCH_STREAM, step] : [BATCH_STREAM, step, number]);
  const examples: SftExample[] = [];
  while (examples.length < TRAINING.batchSize) {
    for (const conversation of corpus.draw(random, number + step / all))
      examples.push({ messages: toMessages(conversation) });
  }
  return examples;
}
