// node-llama-cpp's side of the bench serve: the same chats, each in a sequence of one context, which batches them.
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { getLlama } from "node-llama-cpp";

const { values } = parseArgs({ options: { model: { type: "string" }, threads: { type: "string", default: "2" } } });
const answer = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const threads = Number(values.threads);
const llama = await getLlama({ gpu: false, build: "never", maxThreads: threads, logLevel: "error" });
const model = await llama.loadModel({ modelPath: values.model });
const contexts = new Map();

async function getContext(clients) {
  for (const [other, context] of contexts) {
    if (other === clients) return context;
    await context.dispose();
    contexts.delete(other);
  }
  const context = await model.createContext({ contextSize: 256, sequences: clients, batchSize: 512, threads });
  contexts.set(clients, context);
  return context;
}

let round = 0;

async function ask(sequence, client, newTokens) {
  const content = `Request ${round}, client ${client}. Tell me a long story about a dealer, a player and a deck of cards.`;
  const system = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n";
  const prompt = `${system}<|im_start|>user\n${content}<|im_end|>\n<|im_start|>assistant\n`;
  let count = 0;
  for await (const _ of sequence.evaluate(model.tokenize(prompt, true), { temperature: 0, yieldEogToken: true }))
    if (++count === newTokens) break;
  if (count !== newTokens) throw new Error(`${count} tokens instead of ${newTokens}`);
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === "") continue;
  try {
    const { clients, new_tokens: newTokens, repeat } = JSON.parse(line);
    const context = await getContext(clients);
    const seconds = [];
    for (let run = 0; run < repeat; run++) {
      round++;
      const sequences = Array.from({ length: clients }, () => context.getSequence());
      const start = performance.now();
      await Promise.all(sequences.map((sequence, client) => ask(sequence, client, newTokens)));
      seconds.push((performance.now() - start) / 1000);
      for (const sequence of sequences) sequence.dispose();
    }
    const median = [...seconds].sort((a, b) => a - b)[seconds.length >> 1];
    const peak_rss = process.resourceUsage().maxRSS * 1024;
    answer({ seconds, count: clients * newTokens, values: { "requests/s": clients / median }, peak_rss });
  } catch (error) {
    answer({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}
