import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Context } from "./framework.js";

/** SmolLM2-135M's sizes, for counting a step's arithmetic. */
export const smollm2 = {
  layers: 30,
  hidden: 576,
  heads: 9,
  keyValueHeads: 3,
  headSize: 64,
  intermediate: 1536,
  vocabulary: 49152,
};

/**
 * The GGUF that the benches' weights come from: LLAMAGYM_BENCH_MODEL, or the shared one next to the
 * repository.
 */
export function ggufPath({ root }: Context): string {
  return process.env.LLAMAGYM_BENCH_MODEL ?? join(root, "..", "shared", "models", "SmolLM2-135M-Instruct.Q4_1.gguf");
}

/** The float32 folder that every side opens. */
export function folderPath({ root }: Context): string {
  return join(root, "bench", ".cache", "smollm2-135m");
}

/** The same weights for LlamaGym's version of Transformers. */
export function legacyFolderPath(context: Context): string {
  return `${folderPath(context)}-legacy`;
}

/** What our side opens: the folder, or the GGUF itself where no peer has written the folder. */
export function ourModelPath(context: Context): string {
  return existsSync(folderPath(context)) ? folderPath(context) : ggufPath(context);
}

function runWeights(context: Context, environment: string, parameters: string[]): void {
  const python = process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"];
  const program = join(context.root, "bench", "peers", environment, ...python);
  const script = join(context.root, "bench", "peers", "weights.py");
  const { status, stderr } = spawnSync(program, [script, ...parameters], { encoding: "utf8" });
  if (status !== 0) throw new Error(`writing the weights failed: ${stderr.trim().slice(-2000)}`);
}

/**
 * Dequantizes the GGUF once into the folder that both sides open. Throws when the GGUF is not
 * there.
 * @param peers the installed peers; without any, the GGUF itself is used and nothing is written
 * @param legacy also for LlamaGym's version of Transformers
 */
export function prepareWeights(context: Context, peers: string[], legacy = false): void {
  const folder = folderPath(context);
  const gguf = ggufPath(context);
  if (!existsSync(folder)) {
    if (!existsSync(gguf))
      throw new Error(`no model at ${gguf}: set LLAMAGYM_BENCH_MODEL to SmolLM2-135M-Instruct.Q4_1.gguf`);
    if (peers.length > 0) runWeights(context, ".venv", [gguf, folder]);
  }
  if (legacy && peers.length > 0 && !existsSync(legacyFolderPath(context))) {
    runWeights(context, ".venv-llamagym", ["--legacy", folder, legacyFolderPath(context)]);
  }
}

/** The GGUF of a kind that `prepareExport` writes. */
export function exportedPath({ root }: Context, dtype: "F32" | "Q8"): string {
  return join(root, "bench", ".cache", `smollm2-135m-${dtype.toLowerCase()}`, "model.gguf");
}

/**
 * Writes the model as a GGUF of a kind by `llamagym export`, once: llama.cpp has no float32 of a
 * quantized file.
 */
export function prepareExport(context: Context, dtype: "F32" | "Q8"): void {
  const source = ggufPath(context);
  if (!existsSync(source)) throw new Error(`no model at ${source}: set LLAMAGYM_BENCH_MODEL or pass --model`);
  const file = exportedPath(context, dtype);
  if (existsSync(file)) return;
  const command = join(context.root, "dist", "app", "cli", "bin.js");
  const args = [command, "export", source, "--format", "gguf", "--dtype", dtype, "--output", dirname(file)];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`writing ${file} failed: ${stderr.trim().slice(-2000)}`);
}
