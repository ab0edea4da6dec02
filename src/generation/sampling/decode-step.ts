import { FrozenStates } from "../../models/graphs/frozen-states.js";
import type { CausalLM } from "../../models/causal-lm.js";
import type { SampleResult } from "../../engine/runtime/kernels/run-kernel.js";
import type { WorkerRequest } from "../../engine/runtime/worker-protocol.js";
import type { RowInput } from "../cache/decode-feeds.js";
import type { DecodeSession } from "../cache/decode-session.js";
import type { RunningSequence } from "./running-sequence.js";
import { cacheShape, KvCache, copyCacheRows, writeCache, type CacheWrite } from "../cache/kv-cache.js";
import type { PrefixCache } from "../cache/prefix-cache.js";
import type { CacheRow } from "../cache/kv-cache-rows.js";

/**
 * Maximum number of tokens of a row in one step; longer prompts take several. Rows with prompts of fewer tokens share a step up to
 * this number, because longer steps are slower per token (docs/decisions/short-passes.md).
 */
export const MAX_CHUNK_TOKENS = 512;

/** A row with at most this many unprocessed tokens runs together with rows that process one token. */
export const PREFILL_THRESHOLD = 8;

export interface ActiveRow {
  readonly row: CacheRow;
  readonly rowIndex: number;
  readonly sequence: RunningSequence;
  /** Slots of the kept states of all unprocessed tokens, from which the step starts. */
  readonly frozenSlots?: readonly number[];
}

/**
 * One forward pass over rows, all or none of which start from kept states: processes and caches their tokens, then samples or scores
 * the next ones.
 */
export class DecodeStep {
  constructor(
    private readonly model: CausalLM,
    private readonly session: DecodeSession,
    private readonly cache: KvCache,
    private readonly prefixCache: PrefixCache,
    private readonly activeRows: readonly ActiveRow[],
    private readonly adapter: boolean,
  ) {}

  async run(): Promise<void> {
    const { runtime, config } = this.model;
    const shape = cacheShape(config);
    const chunks = this.activeRows.map(({ sequence }) => sequence.unprocessedTokens.slice(0, MAX_CHUNK_TOKENS));
    const { computedRows, starts } = this.dedupePrompts(chunks);
    // Prefill uses a temporary cache without the other rows, because attention costs grow with the number of rows.
    const usesTemporaryCache =
      computedRows.length < this.cache.rows && chunks.some((chunk) => chunk.length > PREFILL_THRESHOLD);
    const maxCachedLength = Math.max(...computedRows.map(({ row }) => row.tokens.length));
    const temporaryCache =
      usesTemporaryCache && maxCachedLength > 0
        ? new KvCache(runtime, shape, computedRows.length, maxCachedLength)
        : undefined;
    const rows: RowInput[] = computedRows.map(({ row, rowIndex, sequence, chunk }, i) => ({
      tokens: chunk,
      cacheRow: usesTemporaryCache ? i : rowIndex,
      cachedLength: row.tokens.length,
      sequenceLength: sequence.length,
    }));

    const { samples, scores } = this.planOutputs(chunks, starts);
    const headTokens = scores.length > 0 ? undefined : findHeadTokens(samples, config.vocabSize);
    const selected = headTokens === undefined ? [...samples, ...scores] : [];
    const startsFromStates = this.activeRows[0].frozenSlots !== undefined;
    const { requests: decode, outputs } = this.session.prepare({
      rows,
      prefixCache: this.prefixCache.cache,
      prefixLength: this.prefixCache.tokens.length,
      cache: usesTemporaryCache ? temporaryCache : this.cache,
      selectedTokens: selected.map(({ flatIndex }) => flatIndex),
      inverseTemperatures: selected.map(({ sequence }) => 1 / (sequence.request?.sampling.temperature || 1)),
      ...(headTokens && { headTokens, constrainedTokens: samples.map(({ flatIndex }) => flatIndex) }),
      ...(startsFromStates && {
        frozenSlots: computedRows.flatMap(({ frozenSlots, chunk }) => frozenSlots!.slice(0, chunk.length)),
      }),
      adapter: this.adapter,
    });
    const requests: WorkerRequest[] = [];
    if (temporaryCache !== undefined) {
      const copies = computedRows.map(({ row, rowIndex }, i) => ({
        fromRow: rowIndex,
        toRow: i,
        tokenCount: row.tokens.length,
      }));
      requests.push(copyCacheRows(shape, this.cache, temporaryCache, copies));
    }
    requests.push(...decode, writeCache(shape, outputs.newKeyValues, this.cache, this.cacheWrites(chunks, starts)));
    const frozenStates = startsFromStates ? undefined : FrozenStates.find(this.model);
    if (frozenStates !== undefined) {
      const decoded = this.activeRows.map(({ row, sequence }, i) => ({
        cached: [...this.prefixCache.tokens, ...row.tokens],
        tokens: chunks[i],
        sequenceLength: sequence.length,
        flatIndex: starts[i],
      }));
      requests.push(...frozenStates.keep(decoded, outputs.frozenStates!));
    }
    const rowRange = (view: typeof outputs.rawProbabilities, start: number, count: number) => ({
      ...view,
      offset: view.offset + start * config.vocabSize,
      shape: [count, config.vocabSize],
    });
    if (scores.length > 0) {
      const tokens = Int32Array.from(scores, ({ target }) => target);
      requests.push({
        kind: "kernel",
        call: {
          name: "gatherLogProbs",
          logits: rowRange(outputs.logits, samples.length, scores.length),
          rawProbabilities: rowRange(outputs.rawProbabilities, samples.length, scores.length),
          tokens,
        },
      });
    }
    // Both requests are sent in one turn, so that a sampler that shares the session cannot run in between.
    const scored = scores.length > 0 ? runtime.sequence(requests.splice(0)) : undefined;
    if (samples.length > 0) {
      requests.push({
        kind: "kernel",
        call: {
          name: "sample",
          ...(headTokens === undefined
            ? {
                logits: rowRange(outputs.logits, 0, samples.length),
                rawProbabilities: rowRange(outputs.rawProbabilities, 0, samples.length),
                probabilities: rowRange(outputs.probabilities, 0, samples.length),
              }
            : { logits: outputs.constrainedLogits, columns: headTokens }),
          values: outputs.values && { ...outputs.values, shape: [samples.length] },
          rows: samples.map(({ sequence }) => samplingRow(sequence)),
        },
      });
    }
    const sampled = requests.length > 0 ? runtime.sequence(requests) : undefined;
    temporaryCache?.free();
    const [logProbs, result] = await Promise.all([scored, sampled]);
    this.activeRows.forEach(({ row, sequence }, i) => {
      for (const token of chunks[i]) row.tokens.push(token);
      if (startsFromStates) row.lacksFrozenLayers = true;
      sequence.unprocessedTokens = sequence.unprocessedTokens.slice(chunks[i].length);
    });
    if (scores.length > 0)
      (logProbs as Float64Array).forEach((logProb, i) => scores[i].sequence.rawLogProbs.push(logProb));
    if (samples.length > 0) this.appendSampled(samples, result as SampleResult);
  }

  /**
   * Returns the rows to compute, and the offset of each row's chunk among the flat tokens. Of rows with the same cached tokens and
   * the same chunk only the first is computed.
   */
  private dedupePrompts(chunks: readonly (readonly number[])[]): {
    computedRows: (ActiveRow & { chunk: readonly number[] })[];
    starts: number[];
  } {
    const computedRows: (ActiveRow & { chunk: readonly number[] })[] = [];
    const startByKey = new Map<string, number>();
    let flatIndex = 0;
    const starts = this.activeRows.map((each, i) => {
      const chunk = chunks[i];
      const key = chunk.length > PREFILL_THRESHOLD ? promptKey(each) : `row ${i}`;
      const start = startByKey.get(key) ?? flatIndex;
      if (startByKey.has(key)) return start;
      startByKey.set(key, start);
      computedRows.push({ ...each, chunk });
      flatIndex += chunk.length;
      return start;
    });
    return { computedRows, starts };
  }

  /** Returns the flat indices after which tokens are sampled, and those after which tokens are scored. */
  private planOutputs(
    chunks: readonly (readonly number[])[],
    starts: readonly number[],
  ): {
    samples: { sequence: RunningSequence; flatIndex: number }[];
    scores: { sequence: RunningSequence; flatIndex: number; target: number }[];
  } {
    const samples: { sequence: RunningSequence; flatIndex: number }[] = [];
    const scores: { sequence: RunningSequence; flatIndex: number; target: number }[] = [];
    this.activeRows.forEach(({ sequence }, i) => {
      const [chunk, flatIndex] = [chunks[i], starts[i]];
      const remaining = sequence.unprocessedTokens.length - chunk.length;
      if (sequence.request !== undefined) {
        if (remaining === 0) samples.push({ sequence, flatIndex: flatIndex + chunk.length - 1 });
      } else {
        // The last target follows the last unprocessed token, and so on backwards.
        chunk.forEach((_, k) => {
          const target = sequence.scoredTokens.length - 1 - (remaining + chunk.length - 1 - k);
          if (target >= 0) scores.push({ sequence, flatIndex: flatIndex + k, target: sequence.scoredTokens[target] });
        });
      }
    });
    return { samples, scores };
  }

  private cacheWrites(chunks: readonly (readonly number[])[], starts: readonly number[]): CacheWrite[] {
    return this.activeRows.flatMap(({ row, rowIndex }, i) =>
      chunks[i].map((_, k) => ({ flatIndex: starts[i] + k, row: rowIndex, position: row.tokens.length + k })),
    );
  }

  private appendSampled(
    samples: readonly { sequence: RunningSequence }[],
    { tokens, logProbs, rawLogProbs, values, distributions, keptTokens, topLogProbs }: SampleResult,
  ): void {
    samples.forEach(({ sequence }, i) => {
      const [token, logProb, rawLogProb, distribution] = [tokens[i], logProbs[i], rawLogProbs[i], distributions[i]];
      const state = {
        value: values?.[i] ?? NaN,
        distribution,
        keptTokens: keptTokens[i],
        topLogProbs: topLogProbs[i],
      };
      try {
        sequence.appendToken({ token, logProb, rawLogProb, ...state });
        sequence.appendForcedTokens();
      } catch (error) {
        sequence.fail(error as Error);
      }
    });
  }
}

/**
 * Returns the rows with long prompts that are prefilled in one step: together at most `MAX_CHUNK_TOKENS` tokens, at least one row.
 * Equal prompts count once.
 */
export function selectPrefill<Row extends ActiveRow>(rows: readonly Row[]): Row[] {
  const keys = new Set<string>();
  let tokenCount = 0;
  return rows.filter((row) => {
    const key = promptKey(row);
    if (keys.has(key)) return true;
    const newCount = tokenCount + row.sequence.unprocessedTokens.length;
    if (keys.size > 0 && newCount > MAX_CHUNK_TOKENS) return false;
    keys.add(key);
    tokenCount = newCount;
    return true;
  });
}

/** Rows with the same key have the same prompt and the same cached tokens, so one of them is computed for all. */
function promptKey({ row, sequence }: ActiveRow): string {
  return `${sequence.length}:${row.tokens.join()}:${sequence.unprocessedTokens.join()}`;
}

/** Computing the logits of some tokens pays off for at most this fraction of the vocabulary. */
const MAX_HEAD_TOKENS = 1 / 4;

/** Returns the tokens that the constraints of all sequences allow, where no other logits are needed and these are few. */
function findHeadTokens(samples: readonly { sequence: RunningSequence }[], vocabSize: number): number[] | undefined {
  const headTokens = new Set<number>();
  const seen = new Set<Int32Array>();
  for (const { sequence } of samples) {
    const { allowedTokens, request } = sequence;
    if (allowedTokens === undefined || request?.skipRawLogProbs !== true || (request.topLogProbs ?? 0) > 0)
      return undefined;
    if (seen.has(allowedTokens)) continue;
    seen.add(allowedTokens);
    for (const token of allowedTokens) headTokens.add(token);
    if (headTokens.size > MAX_HEAD_TOKENS * vocabSize) return undefined;
  }
  return headTokens.size === 0 ? undefined : [...headTokens].sort((a, b) => a - b);
}

function samplingRow({ request, prompt, tokens, allowedTokens }: RunningSequence) {
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
