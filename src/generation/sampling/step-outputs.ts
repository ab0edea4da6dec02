import type { SamplingRow } from "../../engine/runtime/index.js";
import { paysOffAsHead } from "../../models/graphs/index.js";
import type { RunningSequence } from "./running-sequence.js";
import type { RowPlan } from "./step-plan.js";

/** A sequence whose next token is sampled after a step's token. */
export interface SampledOutput {
  readonly sequence: RunningSequence;
  /** Index of the token among the flat tokens of the step. */
  readonly flatIndex: number;
}

/** A token to score after a step's token. */
export interface ScoredOutput extends SampledOutput {
  readonly target: number;
}

/** The tokens of a step after which tokens are sampled or scored. */
export interface StepOutputs {
  readonly samples: readonly SampledOutput[];
  readonly scores: readonly ScoredOutput[];
  /** The only tokens whose logits are needed; undefined for all. */
  readonly headTokens: readonly number[] | undefined;
}

/**
 * Returns what a step has to compute for its rows, whose chunks begin at `starts` among the flat
 * tokens.
 */
export function planOutputs(rows: readonly RowPlan[], starts: readonly number[], vocabSize: number): StepOutputs {
  const samples: SampledOutput[] = [];
  const scores: ScoredOutput[] = [];
  rows.forEach(({ sequence, chunk, unprocessed }, i) => {
    const flatIndex = starts[i];
    const remaining = unprocessed.length - chunk.length;
    if (sequence.request !== undefined) {
      if (remaining === 0) samples.push({ sequence, flatIndex: flatIndex + chunk.length - 1 });
      return;
    }
    // The last target follows the last unprocessed token, and so on backwards. Tokens that are
    // computed again have their scores.
    chunk.forEach((_, k) => {
      const target = sequence.scoredTokens.length - 1 - (remaining + chunk.length - 1 - k);
      if (target >= sequence.rawLogProbs.length)
        scores.push({ sequence, flatIndex: flatIndex + k, target: sequence.scoredTokens[target] });
    });
  });
  return { samples, scores, headTokens: scores.length > 0 ? undefined : findHeadTokens(samples, vocabSize) };
}

/**
 * Returns the tokens that the constraints of all sequences allow, where no other logits are needed
 * and these are few.
 */
function findHeadTokens(samples: readonly SampledOutput[], vocabSize: number): number[] | undefined {
  const headTokens = new Set<number>();
  const seen = new Set<Int32Array>();
  for (const { sequence } of samples) {
    const { allowedTokens, request } = sequence;
    if (allowedTokens === undefined || request?.skipRawLogProbs !== true || (request.topLogProbs ?? 0) > 0)
      return undefined;
    if (seen.has(allowedTokens)) continue;
    seen.add(allowedTokens);
    for (const token of allowedTokens) headTokens.add(token);
    if (!paysOffAsHead(headTokens.size, vocabSize)) return undefined;
  }
  return headTokens.size === 0 ? undefined : [...headTokens].sort((a, b) => a - b);
}

/** Returns how the next token of a sequence is sampled; draws its random number. */
export function samplingRow({ request, prompt, tokens, allowedTokens }: RunningSequence): SamplingRow {
  const { sampling, random } = request!;
  const isPenalized = sampling.repetitionPenalty !== 1;
  return {
    sampling,
    uniform: sampling.temperature === 0 ? 0 : random(),
    seenTokens: isPenalized ? Int32Array.from([...prompt, ...tokens]) : new Int32Array(0),
    allowedTokens,
    returnsDistribution: request!.onDistribution !== undefined,
    returnsKeptTokens: request!.recordsKeptTokens === true,
    topLogProbs: request!.topLogProbs ?? 0,
  };
}
