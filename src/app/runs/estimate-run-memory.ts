import { readFile } from "node:fs/promises";
import { freemem } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../../core/json.js";
import {
  chooseModelDevice,
  EMBEDDED_MODEL,
  getBaseModel,
  parseGradientCheckpointing,
  parseLoraOptions,
  parseQuantizeBits,
} from "../../models/index.js";
import { parseModelConfig } from "../../models/architectures/index.js";
import {
  countParameters,
  estimateModelMemory,
  findModel,
  type MemoryUsage,
  type WeightBits,
} from "../../models/registry/index.js";
import { findRun } from "./run-folder.js";
import type { TrainConfig } from "./run-settings.js";
import { isTeacherUrl } from "./teacher-settings.js";

/** The memory that a run needs and the available memory, in bytes. */
export interface MemoryEstimate {
  readonly needed: number;
  readonly available: number;
  /** Describes both and, if memory is insufficient, what would fit. */
  readonly text: string;
  readonly fit: "fits" | "tight" | "insufficient";
}

/**
 * A run needs this much more than there is before it is considered not to fit: estimates may be a
 * tenth too high.
 */
const TOLERANCE = 1.1;

/** Settings that reduce memory, tried in this order. */
const SMALLER_TOKENS = 128;

/** Returns the free memory in bytes, within the limit of a container. */
export function availableMemory(): number {
  const limit = process.constrainedMemory();
  const free = freemem();
  return limit > 0 ? Math.min(free, limit - process.memoryUsage.rss()) : free;
}

/**
 * Estimates the memory of a run before its model is downloaded, from a folder's config.json or from
 * the registry; on a GPU, its memory, which does not say what is free.
 * Returns undefined for the embedded model and for models of unknown size.
 */
export async function estimateRunMemory(
  config: Pick<
    TrainConfig,
    "model" | "quantize" | "device" | "threads" | "microBatchTokens" | "gradientCheckpointing" | "tuning"
  > &
    AdapterSettings &
    ReferenceSettings &
    Partial<Pick<TrainConfig, "backwardPrecision" | "teacher">>,
  available: number = availableMemory(),
): Promise<MemoryEstimate | undefined> {
  const { model, quantize, r, microBatchTokens, tuning } = config;
  if (model === EMBEDDED_MODEL) return undefined;
  const found = await findMemoryEstimator(model);
  if (found === undefined || tuning === "full") return undefined;
  const { estimate, parameters } = found;
  const { layersToTransform, modulesToSave } = parseLoraOptions(config);
  const bits = parseQuantizeBits(quantize) ?? 32;
  const usage = {
    use: "train",
    bits,
    r,
    microBatchTokens,
    gradientCheckpointing: parseGradientCheckpointing(config.gradientCheckpointing),
    layersToTransform: [layersToTransform ?? []].flat(),
    modulesToSave,
    copiesReference: config.syncRefModel === true || config.algorithm === "dpo" || config.algorithm === "kto",
  } as const;
  const device = await chooseModelDevice(config, parameters);
  const ofTeacher = await estimateTeacherMemory(config, device);
  const share = ofTeacher === 0 ? "" : `, ${formatGigabytes(ofTeacher)} of it for the teacher`;
  if (device === "webgpu") {
    const needed = estimate({ ...usage, device }) + ofTeacher;
    const text = `Training ${model} needs about ${formatGigabytes(needed)} of the GPU's memory${share}.`;
    return { needed, available: Infinity, text, fit: "fits" };
  }
  const needed = estimate(usage) + ofTeacher;
  const text = `Training ${model} needs about ${formatGigabytes(needed)} of memory${share}; ${formatGigabytes(available)} are free.`;
  if (needed <= available) return { needed, available, text, fit: "fits" };
  const fit = needed <= TOLERANCE * available ? "tight" : "insufficient";
  const advice = findFittingSettings((changed) => estimate(changed) + ofTeacher, usage, available);
  return { needed, available, text: `${text} ${advice}`, fit };
}

/**
 * Estimates the memory of the teacher's model in bytes; 0 for a model in the student's memory, one
 * at a URL, and one of unknown size.
 */
async function estimateTeacherMemory(
  { model, teacher }: { readonly model: string; readonly teacher?: string | undefined },
  device: "cpu" | "webgpu",
): Promise<number> {
  if (teacher === undefined || teacher === "self" || isTeacherUrl(teacher)) return 0;
  // Opening the teacher reports what cannot be read.
  const base = (await findRun([teacher]))?.config.model ?? (await getBaseModel(teacher).catch(() => teacher));
  // Weights of one file are mapped once.
  if (base === model || base === EMBEDDED_MODEL) return 0;
  return (await findMemoryEstimator(base))?.estimate({ use: "inference", device }) ?? 0;
}

/** By which a run has separate values of the trained parameters as its reference policy. */
interface ReferenceSettings {
  readonly algorithm?: string;
  readonly syncRefModel?: boolean;
}

type AdapterSettings = Parameters<typeof parseLoraOptions>[0];

/** Names the settings with the least effect on the run that make it fit. */
function findFittingSettings(
  estimate: MemoryEstimator,
  usage: MemoryUsage & { readonly bits: WeightBits },
  available: number,
): string {
  const { bits, microBatchTokens = Infinity, layersToTransform = [] } = usage;
  const tokens = microBatchTokens > SMALLER_TOKENS ? { microBatchTokens: SMALLER_TOKENS } : undefined;
  const fewerBits = ([8, 4] as const).filter((fewer) => fewer < bits).map((fewer) => ({ bits: fewer }));
  const fewerLayers = layersToTransform.length === 0 ? { layersToTransform: [-4, -3, -2, -1] } : undefined;
  const smallest = { ...fewerBits.at(-1), ...tokens };
  const checkpoints = usage.gradientCheckpointing === true ? undefined : { gradientCheckpointing: true };
  const candidates: Partial<MemoryUsage>[] = [
    ...(tokens === undefined ? [] : [tokens]),
    ...(checkpoints === undefined ? [] : [{ ...tokens, ...checkpoints }]),
    ...fewerBits,
    ...fewerBits.map((fewer) => ({ ...fewer, ...tokens })),
    ...(fewerLayers === undefined ? [] : [{ ...smallest, ...fewerLayers }]),
  ];
  for (const candidate of candidates) {
    const needed = estimate({ ...usage, ...candidate });
    if (needed > available) continue;
    const options = [
      ...(candidate.bits === undefined ? [] : [`--quantize ${candidate.bits}`]),
      ...(candidate.microBatchTokens === undefined ? [] : [`--micro-batch-tokens ${candidate.microBatchTokens}`]),
      ...(candidate.gradientCheckpointing === undefined ? [] : ["--gradient-checkpointing true"]),
      ...(candidate.layersToTransform === undefined ? [] : ["--layers-to-transform last-4"]),
    ];
    return `${options.join(" ")} needs about ${formatGigabytes(needed)}.`;
  }
  return "Use a smaller model (llamagym models), or free some memory.";
}

type MemoryEstimator = (usage: MemoryUsage) => number;

async function findMemoryEstimator(
  model: string,
): Promise<{ readonly estimate: MemoryEstimator; readonly parameters: number } | undefined> {
  const path = join(model, "config.json");
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) {
    const known = findModel(model)?.model;
    return known && { estimate: known.estimateMemory, parameters: known.parameters };
  }
  try {
    const network = parseModelConfig(JSON.parse(text) as JsonObject, path);
    return { estimate: (usage) => estimateModelMemory(network, usage), parameters: countParameters(network) };
  } catch {
    // Opening the model reports invalid configs.
    return undefined;
  }
}

function formatGigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
