import { existsSync } from "node:fs";
import { join } from "node:path";
import { readJson } from "../../src/core/files/json-file.js";
import type { SamplingParams } from "../../src/engine/runtime/kernels/sampling.js";
import { tokenProbabilities } from "./token-probabilities.js";
import { maxRelativeError, type ParityOptions, type ParityReport } from "./parity-report.js";

const TOLERANCE = 1e-5;

/** Transformers' names; what is not given is off. */
interface StoredSettings {
  readonly temperature?: number;
  readonly top_k?: number;
  readonly top_p?: number;
  readonly min_p?: number;
  readonly repetition_penalty?: number;
}

interface SamplingCase {
  readonly name: string;
  readonly settings: StoredSettings;
  readonly input_ids: readonly number[];
  readonly logits: readonly number[];
  readonly kept: number;
  readonly probabilities: readonly number[];
}

/**
 * Next-token distributions after temperature, top-k and the like: `directory` is the fixtures'
 * sampling/ folder.
 */
export async function runSamplingParity(
  directory: string,
  report: ParityReport,
  _options: ParityOptions,
): Promise<void> {
  const path = join(directory, "sampling.json");
  if (!existsSync(path)) {
    report.skip("sampling", `there is no ${path}`);
    return;
  }
  // Fixtures are written by the generator next to them; a wrong one shows as a failed case.
  const { cases } = (await readJson(path)) as unknown as { readonly cases: readonly SamplingCase[] };
  for (const fixture of cases) {
    try {
      compareDistribution(fixture, report);
    } catch (error) {
      report.error(`sampling/${fixture.name}`, error);
    }
  }
}

function compareDistribution(
  { name, settings, input_ids: inputIds, logits, kept, probabilities }: SamplingCase,
  report: ParityReport,
): void {
  const ours = tokenProbabilities(toRowLogits(logits, settings.temperature ?? 1), toSamplingParams(settings), inputIds);
  report.checkWithin(`sampling/${name}`, maxRelativeError(ours, probabilities), TOLERANCE);
  const count = ours.filter((probability) => probability > 0).length;
  report.checkEqual(`sampling/${name} kept`, count === kept, `(${count} for ${kept} tokens)`);
}

function toSamplingParams(stored: StoredSettings): SamplingParams {
  const { temperature = 1, top_k: topK = 0, top_p: topP = 1, min_p: minP = 0, repetition_penalty = 1 } = stored;
  return { temperature, topK, topP, minP, repetitionPenalty: repetition_penalty };
}

/** Logits and their softmax at a temperature, which the graph computes for the sampler. */
function toRowLogits(
  logits: readonly number[],
  temperature: number,
): { logits: Float32Array; probabilities: Float32Array } {
  const scaled = logits.map((logit) => logit / temperature);
  const largest = Math.max(...scaled);
  const weights = scaled.map((logit) => Math.exp(logit - largest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return { logits: Float32Array.from(logits), probabilities: Float32Array.from(weights, (weight) => weight / sum) };
}
