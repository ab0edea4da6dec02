import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { EngineWork } from "./engine-work.js";
import type { Bench, BenchCase, Context, Figures, Metric, PeerSide } from "./framework.js";
import { exportedPath, folderPath, ggufPath, ourModelPath, prepareExport, prepareWeights, smollm2 } from "./smollm2.js";

const tokensPerSecond: Metric = { kind: "rate", unit: "tokens/s" };
const loraRank = 16;
const allLogits = { work: "train", rows: 8, tokens: 128, shared: 0, last: 0 } as const;
const last32 = { ...allLogits, last: 32 } as const;
const sharedPrefix = { work: "train", rows: 16, tokens: 130, shared: 90, last: 32 } as const;

/** The products of SmolLM2's layers and head at 1,024 and 2,048 tokens. */
const sgemmShapes: [number, number, number][] = [
  [1024, 576, 576],
  [1024, 576, 1536],
  [1024, 1536, 576],
  [2048, 576, 1536],
  [1024, 576, 8192],
];

/** A blackjack prompt of 200 tokens. Compiled, this file stands in bench/.build/bench. */
const prompt = (JSON.parse(readFileSync(new URL("../../prompt.json", import.meta.url), "utf8")) as { ids: number[] })
  .ids;

function defineCase(name: string, parameters: EngineWork, metric: Metric, options: Partial<BenchCase> = {}): BenchCase {
  return { name, parameters, metric, ...options };
}

function decode(rows: number, quantize?: 8 | 4, peers?: string[]): BenchCase {
  const parameters = { work: "decode", rows, prompt, new_tokens: 32, temperature: 0.9, top_p: 0.9, quantize } as const;
  const suffix = quantize === undefined ? "" : `_${quantize}bit`;
  return defineCase(`decode_b${rows}${suffix}`, parameters, tokensPerSecond, { peers });
}

const BATCHES = [1, 8, 32];

function start(name: string, source: "folder" | "gguf", options: Partial<BenchCase>): BenchCase {
  return defineCase(
    name,
    { work: "start", prompt, source },
    { kind: "seconds" },
    { freshProcess: true, ratio: false, ...options },
  );
}

/**
 * Floating-point operations that a training step cannot do without: the frozen matrices forward and
 * backward to their inputs (no gradient), the four skinny products of LoRA's gradients, causal
 * attention (2 products forward, 4 backward) and the head at the positions whose logits are needed.
 */
function trainingOperations({ rows, tokens }: { rows: number; tokens: number }): number {
  const { layers, hidden, heads, keyValueHeads, headSize, intermediate, vocabulary } = smollm2;
  const attention = heads * headSize;
  const shapes = [
    [hidden, attention],
    [hidden, keyValueHeads * headSize],
    [hidden, keyValueHeads * headSize],
    [attention, hidden],
    [hidden, intermediate],
    [hidden, intermediate],
    [intermediate, hidden],
  ];
  const positions = rows * tokens;
  const weights = shapes.reduce((sum, [inputs, outputs]) => sum + inputs * outputs, 0);
  const lora = shapes.reduce((sum, [inputs, outputs]) => sum + loraRank * (inputs + outputs), 0);
  const pairs = (rows * tokens * (tokens + 1)) / 2;
  const layer = 2 * 2 * positions * weights + 2 * 2 * positions * lora + 6 * 2 * pairs * attention;
  return layers * layer + 2 * 2 * positions * hidden * vocabulary;
}

/**
 * How much of the machine's rate of float32 matrix products, the best that any side reached, a
 * training step attains.
 */
function deriveSgemmShare(ours: Figures, peers: Record<string, Figures>): Figures {
  const rates = [ours, ...Object.values(peers)].flatMap((figures) => ("sgemm" in figures ? [figures.sgemm] : []));
  if (rates.length === 0 || !("train_all_logits" in ours)) return {};
  const seconds = (allLogits.rows * allLogits.tokens) / ours.train_all_logits;
  return { sgemm_share: trainingOperations(allLogits) / seconds / 1e9 / Math.max(...rates) };
}

function peerArguments(context: Context): string[] {
  const compile = process.env.LLAMAGYM_BENCH_COMPILE ? ["--compile"] : [];
  return ["--model", folderPath(context), "--threads", `${context.threads}`, ...compile];
}

const llamaPeer = (path: (context: Context) => string): PeerSide => ({
  environment: "node",
  script: "node/engine.mjs",
  arguments: (context) => ["--model", path(context), "--threads", `${context.threads}`],
  optIn: true,
});

export const bench: Bench = {
  name: "engine",
  description: "SmolLM2-135M, LoRA r 16 on all linear layers; peers: PyTorch + Transformers + PEFT, llama.cpp",
  ours: {
    module: join("ours", "engine.js"),
    arguments: (context) => [
      "--model",
      ourModelPath(context),
      "--gguf",
      ggufPath(context),
      "--threads",
      `${context.threads}`,
    ],
  },
  peers: {
    pytorch: { environment: ".venv", script: "engine.py", arguments: peerArguments },
    pytorch_bfloat16: {
      environment: ".venv",
      script: "engine.py",
      arguments: (context) => [...peerArguments(context), "--dtype", "bfloat16"],
      optIn: true,
    },
    "llama.cpp_q8_0": llamaPeer((context) => exportedPath(context, "Q8")),
    "llama.cpp_q4_1": llamaPeer(ggufPath),
  },
  prepare: async (context, peers) => {
    prepareWeights(
      context,
      peers.filter((name) => name.startsWith("pytorch")),
    );
    if (peers.includes("llama.cpp_q8_0")) prepareExport(context, "Q8");
  },
  cases: [
    defineCase(
      "sgemm",
      { work: "sgemm", shapes: sgemmShapes },
      { kind: "rate", unit: "GFLOP/s", scale: 1e-9 },
      { ratio: false },
    ),
    defineCase("train_all_logits", allLogits, tokensPerSecond, { warmup: 2 }),
    defineCase("train_last_32", last32, tokensPerSecond),
    defineCase("train_last_32_int8", { ...last32, backward: "int8" }, tokensPerSecond, {
      peers: [],
      ratio: false,
    }),
    defineCase("train_all_logits_int8", { ...allLogits, backward: "int8" }, tokensPerSecond, {
      peers: ["pytorch_bfloat16"],
    }),
    defineCase("train_all_logits_8bit", { ...allLogits, backward: "int8", quantize: 8 }, tokensPerSecond, {
      peers: ["pytorch_bfloat16"],
    }),
    defineCase("train_shared_prefix", sharedPrefix, tokensPerSecond),
    defineCase("prefill", { work: "prefill", rows: 8, tokens: 200 }, tokensPerSecond),
    ...BATCHES.map((rows) => decode(rows)),
    ...BATCHES.map((rows) => decode(rows, 8, ["pytorch_bfloat16", "llama.cpp_q8_0"])),
    ...BATCHES.map((rows) => decode(rows, 4, ["pytorch_bfloat16", "llama.cpp_q4_1"])),
    defineCase(
      "peak_memory",
      allLogits,
      { kind: "peak_bytes" },
      { freshProcess: true, warmup: 0, repeat: 3, maxRuns: 2 },
    ),
    start("start_seconds", "folder", {}),
    start("start_gguf_seconds", "gguf", { peers: [] }),
  ],
  derive: deriveSgemmShare,
};
