// Runs cases, given as JSON on standard input, in transformers.js or node-llama-cpp, and prints
// their results as JSON. Cases: { path, sequences: ids[], prompts: text[], maxTokens }; results: {
// top: ids[], encoded: ids[], completions: text[] }.
import { basename, dirname } from "node:path";
import { text } from "node:stream/consumers";

async function openLlama() {
  const { getLlama } = await import("node-llama-cpp");
  const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: 1 });
  return (given) => runLlama(llama, given);
}

async function runLlama(llama, { path, sequences, prompts, maxTokens }) {
  const model = await llama.loadModel({ modelPath: path, useMmap: false });
  const longest = Math.max(0, ...sequences.map(({ length }) => length));
  const context = await model.createContext({ contextSize: Math.max(longest + 1, 256) });
  const sequence = context.getSequence();
  const greedy = { generateNext: { token: true, options: { temperature: 0 } } };
  const top = [];
  for (const ids of sequences) {
    await sequence.clearHistory();
    const results = await sequence.controlledEvaluate(ids.map((id) => [id, greedy]));
    top.push(results.map(({ next }) => next.token));
  }
  const encoded = prompts.map((prompt) => [...model.tokenize(prompt, true)]);
  const completions = [];
  for (const ids of encoded) {
    await sequence.clearHistory();
    const tokens = [];
    for await (const token of sequence.evaluate(ids, { temperature: 0 })) {
      if (model.isEogToken(token)) break;
      tokens.push(token);
      if (tokens.length === maxTokens) break;
    }
    completions.push(model.detokenize(tokens, false, ids));
  }
  await model.dispose();
  return { top, encoded, completions };
}

async function openTransformers() {
  const transformers = await import("@huggingface/transformers");
  transformers.env.allowRemoteModels = false;
  return (given) => runOnnx(transformers, given);
}

async function runOnnx({ AutoModelForCausalLM, AutoTokenizer, Tensor, env }, { path, sequences, prompts, maxTokens }) {
  env.localModelPath = `${dirname(path)}/`;
  const model = await AutoModelForCausalLM.from_pretrained(basename(path));
  const tokenizer = await AutoTokenizer.from_pretrained(basename(path));
  const top = [];
  for (const ids of sequences) {
    const int64 = (values) => new Tensor("int64", BigInt64Array.from(values, BigInt), [1, ids.length]);
    const { logits } = await model({ input_ids: int64(ids), attention_mask: int64(ids.map(() => 1)) });
    const width = logits.dims[2];
    const argMax = (row) => row.reduce((best, value, i) => (value > row[best] ? i : best), 0);
    top.push(ids.map((_, i) => argMax(logits.data.subarray(i * width, (i + 1) * width))));
  }
  const encoded = [];
  const completions = [];
  for (const prompt of prompts) {
    const inputs = tokenizer(prompt, { add_special_tokens: false });
    const ids = inputs.input_ids.tolist()[0].map(Number);
    encoded.push(ids);
    const output = await model.generate({ ...inputs, max_new_tokens: maxTokens, do_sample: false });
    const tokens = output.tolist()[0].slice(ids.length);
    completions.push(tokenizer.decode(tokens, { skip_special_tokens: true }));
  }
  await model.dispose();
  return { top, encoded, completions };
}

const run = await (process.argv[2] === "llama" ? openLlama() : openTransformers());
const results = [];
for (const given of JSON.parse(await text(process.stdin))) results.push(await run(given));
// The programs keep threads, which would keep the process; a pipe takes long output only in parts.
process.stdout.write(`\n${JSON.stringify(results)}\n`, () => process.exit(0));
