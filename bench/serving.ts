import type { Bench, BenchCase, Context } from "./framework.js";
import { exportedPath, prepareExport } from "./smollm2.js";

/** `clients` that each send one chat of some 40 prompt tokens and receive `new_tokens` tokens, greedily. Count: sampled tokens. */
export type ServeWork = { work: "serve"; clients: number; new_tokens: number };

const NEW_TOKENS = 32;

function defineCase(clients: number): BenchCase {
  const parameters: ServeWork = { work: "serve", clients, new_tokens: NEW_TOKENS };
  return { name: `clients_${clients}`, parameters, metric: { kind: "rate", unit: "tokens/s" }, maxRuns: 5 };
}

const peer = (dtype: "F32" | "Q8") => ({
  environment: "node",
  script: "node/serving.mjs",
  arguments: (context: Context) => ["--model", exportedPath(context, dtype), "--threads", `${context.threads}`],
});

export const bench: Bench = {
  name: "serve",
  description:
    "SmolLM2-135M behind `llamagym serve` (float32, over HTTP) and in node-llama-cpp (llama.cpp, in its process) with the same " +
    `weights in float32 and Q8_0: clients that each send a chat and receive ${NEW_TOKENS} tokens, all at once.`,
  ours: {
    module: "ours/serving.js",
    arguments: (context) => ["--model", exportedPath(context, "F32"), "--threads", `${context.threads}`],
  },
  peers: { "llama.cpp_f32": peer("F32"), "llama.cpp_q8": { ...peer("Q8"), ratio: false } },
  prepare: async (context) => {
    for (const dtype of ["F32", "Q8"] as const) prepareExport(context, dtype);
  },
  cases: [1, 8, 32].map(defineCase),
};
