// What node-llama-cpp's sides share: the model of --model, contexts by number of sequences, and the
// line protocol.
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { getLlama } from "node-llama-cpp";

const { values } = parseArgs({ options: { model: { type: "string" }, threads: { type: "string", default: "2" } } });
const threads = Number(values.threads);
const llama = await getLlama({ gpu: false, build: "never", maxThreads: threads, logLevel: "error" });
export const model = await llama.loadModel({ modelPath: values.model });
let current;

/** Returns a context with so many sequences; one is kept. */
export async function getContext(sequences) {
  if (current?.sequences !== sequences) {
    await current?.context.dispose();
    const context = await model.createContext({ contextSize: 256, sequences, batchSize: 512, threads });
    current = { sequences, context };
  }
  return current.context;
}

/** Answers each line of standard input with the result of `handle`. */
export async function serve(handle) {
  const answer = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() === "") continue;
    try {
      const result = await handle(JSON.parse(line));
      answer({ ...result, peak_rss: process.resourceUsage().maxRSS * 1024 });
    } catch (error) {
      answer({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  }
}
