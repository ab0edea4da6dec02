import { readFile } from "node:fs/promises";
import { freemem } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../../models/files/index.js";
import { EMBEDDED_MODEL, parseQuantizeBits } from "../../models/index.js";
import { parseModelConfig } from "../../models/architectures/index.js";
import { estimateModelMemory, findModel, type MemoryUsage } from "../../models/registry/index.js";
import type { TrainConfig } from "./run-settings.js";

/** The memory that a run needs and the available memory, in bytes. */
export interface MemoryEstimate {
  readonly needed: number;
  readonly available: number;
  /** Describes both. */
  readonly text: string;
  /** Advice if memory is insufficient. */
  readonly warning: string | undefined;
}

/** Returns the free memory in bytes, within the limit of a container. */
export function availableMemory(): number {
  const limit = process.constrainedMemory();
  const free = freemem();
  return limit > 0 ? Math.min(free, limit - process.memoryUsage.rss()) : free;
}

/**
 * Estimates the memory of a run before its model is downloaded, from a folder's config.json or from the registry. Returns undefined
 * for the embedded model and for models of unknown size.
 */
export async function estimateRunMemory(
  {
    model,
    quantize,
    r,
    microBatchTokens,
    tuning,
  }: Pick<TrainConfig, "model" | "quantize" | "r" | "microBatchTokens" | "tuning">,
  available: number = availableMemory(),
): Promise<MemoryEstimate | undefined> {
  if (model === EMBEDDED_MODEL) return undefined;
  const estimate = await findMemoryEstimator(model);
  if (estimate === undefined || tuning === "full") return undefined;
  const use = { use: "train", r, microBatchTokens } as const;
  const bits = parseQuantizeBits(quantize) ?? 32;
  const needed = estimate({ ...use, bits });
  const text = `Training ${model} needs about ${formatGigabytes(needed)} of memory; ${formatGigabytes(available)} are free`;
  const sizes = { needed, available };
  if (needed <= available) return { ...sizes, text: `${text}.`, warning: undefined };
  const fittingBits = ([8, 4] as const).find(
    (lowerBits) => lowerBits < bits && estimate({ ...use, bits: lowerBits }) <= available,
  );
  const quantizeAdvice =
    fittingBits === undefined
      ? ""
      : ` --quantize ${fittingBits} (${formatGigabytes(estimate({ ...use, bits: fittingBits }))}),`;
  const warning = `${text}. Use${quantizeAdvice} smaller micro-batches (--micro-batch-tokens), or a smaller model (llamagym models).`;
  return { ...sizes, text: `${text}.`, warning };
}

type MemoryEstimator = (usage: MemoryUsage) => number;

async function findMemoryEstimator(model: string): Promise<MemoryEstimator | undefined> {
  const path = join(model, "config.json");
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) return findModel(model)?.model.estimateMemory;
  try {
    const network = parseModelConfig(JSON.parse(text) as JsonObject, path);
    return (usage) => estimateModelMemory(network, usage);
  } catch {
    // Opening the model reports invalid configs.
    return undefined;
  }
}

function formatGigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
