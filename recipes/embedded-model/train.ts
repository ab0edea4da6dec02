import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SftTrainer } from "../../src/algorithms/sft/trainer.js";
import { AutoModelForCausalLM } from "../../src/generation/auto.js";
import { trainWeights } from "../../src/models/adapters.js";
import { RandomStream } from "../../src/tensor/random.js";
import { messagesOf } from "./corpus/conversation.js";
import { Corpus } from "./corpus/corpus.js";
import { writeUntrainedModel } from "./start.js";
import { trainTokenizer } from "./tokenizer.js";

const SIZE = { hiddenSize: 128, intermediateSize: 352, layers: 4, heads: 4, contextLength: 2048 };
const TOKENIZER = { vocabSize: 1024, merges: 160 };
const TOKENIZER_CONVERSATIONS = 20_000;
const BATCH = Number(process.env.BATCH ?? 64);

const { values } = parseArgs({
  options: {
    output: { type: "string", default: "models/llamagym-1m" },
    seed: { type: "string", default: "1" },
    steps: { type: "string", default: "500" },
    threads: { type: "string", default: "1" },
    "learning-rate": { type: "string", default: "3e-3" },
  },
});
const seed = Number(values.seed);
const steps = Number(values.steps);

const corpus = Corpus.create();
const draw = (random: RandomStream, count: number) => {
  const drawn = [];
  while (drawn.length < count) drawn.push(...corpus.draw(random));
  return drawn.map((conversation) => messagesOf(conversation));
};
const texts = draw(new RandomStream(seed, [1]), TOKENIZER_CONVERSATIONS).flatMap((messages) =>
  messages.map(({ content }) => content as string),
);
const tokenizer = trainTokenizer(texts, TOKENIZER);
const start = await mkdtemp(join(tmpdir(), "embedded-model-"));
try {
  const parameters = await writeUntrainedModel(
    start,
    { ...SIZE, ...TOKENIZER },
    tokenizer,
    new RandomStream(seed, [2]),
  );
  console.log(`${parameters} parameters`);
  const base = await AutoModelForCausalLM.fromPretrained(start, { device: "cpu", threads: Number(values.threads) });
  const model = base.withCausalLM(await trainWeights(base.causalLM));
  const trainer = await SftTrainer.create(model, {
    learningRate: Number(values["learning-rate"]),
    lrSchedulerType: "cosine",
    warmupSteps: Math.min(100, steps / 10),
    maxSteps: steps,
    maxTokens: 20_000,
    beta2: 0.98,
    weightDecay: 0.01,
  });
  const random = new RandomStream(seed, [3]);
  const began = performance.now();
  for (let step = 0; step < steps; step++) {
    const stats = await trainer.update(draw(random, BATCH).map((messages) => ({ messages })));
    if (step % 20 === 19 || step < 5) {
      console.log(
        `${stats.step} loss ${stats.loss.toFixed(3)} accuracy ${stats.token_accuracy.toFixed(3)} ` +
          `norm ${stats.grad_norm.toFixed(2)} ${Math.round(stats.tokens_per_second)} tokens/s ` +
          `${Math.round((performance.now() - began) / 1000)} s`,
      );
    }
  }
  await model.savePretrained(values.output);
  await model.close();
} finally {
  await rm(start, { recursive: true });
}
