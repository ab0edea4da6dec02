import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Bench, BenchCase, Context } from "./framework.js";
import { ggufPath } from "./smollm2.js";

/** `clients` that each send one chat of some 40 prompt tokens and receive `new_tokens` tokens, greedily. Count: sampled tokens. */
export type ServeWork = { work: "serve"; clients: number; new_tokens: number };

const NEW_TOKENS = 32;

/** The GGUF that both sides open, written by `llamagym export`: llama.cpp has no float32 of a quantized file. */
function weightsFile({ root }: Context, dtype: "F32" | "Q8"): string {
  return join(root, "bench", ".cache", `smollm2-135m-${dtype.toLowerCase()}`, "model.gguf");
}

function prepare(context: Context): void {
  const source = ggufPath(context);
  if (!existsSync(source)) throw new Error(`no model at ${source}: set LLAMAGYM_BENCH_MODEL or pass --model`);
  for (const dtype of ["F32", "Q8"] as const) {
    const file = weightsFile(context, dtype);
    if (existsSync(file)) continue;
    const command = join(context.root, "dist", "app", "cli", "bin.js");
    const output = join(file, "..");
    const args = [command, "export", source, "--format", "gguf", "--dtype", dtype, "--output", output];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    if (status !== 0) throw new Error(`writing ${file} failed: ${stderr.trim().slice(-2000)}`);
  }
}

function defineCase(clients: number): BenchCase {
  const parameters: ServeWork = { work: "serve", clients, new_tokens: NEW_TOKENS };
  return { name: `clients_${clients}`, parameters, metric: { kind: "rate", unit: "tokens/s" }, maxRuns: 5 };
}

const peer = (dtype: "F32" | "Q8") => ({
  environment: "node",
  script: "node/serving.mjs",
  arguments: (context: Context) => ["--model", weightsFile(context, dtype), "--threads", `${context.threads}`],
});

export const bench: Bench = {
  name: "serve",
  description:
    "SmolLM2-135M behind `llamagym serve` (float32, over HTTP) and in node-llama-cpp (llama.cpp, in its process) with the same " +
    `weights in float32 and Q8_0: clients that each send a chat and receive ${NEW_TOKENS} tokens, all at once.`,
  ours: {
    module: "ours/serving.js",
    arguments: (context) => ["--model", weightsFile(context, "F32"), "--threads", `${context.threads}`],
  },
  peers: { "llama.cpp_f32": peer("F32"), "llama.cpp_q8": { ...peer("Q8"), ratio: false } },
  prepare: async (context) => prepare(context),
  cases: [1, 8, 32].map(defineCase),
};
