import { readFile } from "node:fs/promises";
import { freemem } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../files/index.js";
import { EMBEDDED_MODEL } from "../models/embedded.js";
import { parseModelConfig } from "../models/architectures/index.js";
import { estimateMemory, findModel, type MemoryUse } from "../models/registry/index.js";
import { quantiseBits, type TrainConfig } from "./settings.js";

/** What a run will need, and what there is, in bytes. */
export interface MemoryNeed {
  readonly needed: number;
  readonly available: number;
  /** Both in words. */
  readonly text: string;
  /** What to do where that is too little; undefined where it is enough. */
  readonly warning: string | undefined;
}

/** Bytes of memory that this process can still have: what is free, and no more than a container allows. */
export function availableMemory(): number {
  const limit = process.constrainedMemory();
  const free = freemem();
  return limit > 0 ? Math.min(free, limit - process.memoryUsage.rss()) : free;
}

/**
 * What a run's model will need, before it is downloaded or opened: from the config.json of a folder, otherwise from the registry.
 * Undefined for the embedded model, and for one whose sizes are not known.
 */
export async function memoryNeed(
  { model, quantise, r, maxTokens, train }: Pick<TrainConfig, "model" | "quantise" | "r" | "maxTokens" | "train">,
  available: number = availableMemory(),
): Promise<MemoryNeed | undefined> {
  if (model === EMBEDDED_MODEL) return undefined;
  const memory = await memoryOf(model);
  if (memory === undefined || train === "all") return undefined;
  const use = { use: "train", r, maxTokens } as const;
  const bits = quantiseBits(quantise) ?? 32;
  const needed = memory({ ...use, bits });
  const text = `${model} needs about ${gigabytes(needed)} of memory to be trained, and ${gigabytes(available)} are free`;
  const numbers = { needed, available };
  if (needed <= available) return { ...numbers, text: `${text}.`, warning: undefined };
  const smaller = ([8, 4] as const).find((fewer) => fewer < bits && memory({ ...use, bits: fewer }) <= available);
  const quantised =
    smaller === undefined ? "" : ` --quantise ${smaller} (${gigabytes(memory({ ...use, bits: smaller }))}),`;
  const warning = `${text}: it may not fit. Take${quantised} fewer tokens a pass (--max-tokens), or a smaller model (llamagym models).`;
  return { ...numbers, text: `${text}.`, warning };
}

type Memory = (use: MemoryUse) => number;

async function memoryOf(model: string): Promise<Memory | undefined> {
  const path = join(model, "config.json");
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) return findModel(model)?.model.memory;
  try {
    const network = parseModelConfig(JSON.parse(text) as JsonObject, path);
    return (use) => estimateMemory(network, use);
  } catch {
    // Whatever is wrong with it is said when it is opened.
    return undefined;
  }
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
