import type { BufferView, SampleResult, ScoreResult, WorkerRequest } from "../../engine/runtime/index.js";
import type { CausalLM } from "../../models/index.js";
import type { DecodeOutputs, DecodeSession } from "../cache/decode-session.js";
import { cacheShape, KvCache, copyCacheRows, writeCache, type CacheWrite } from "../cache/kv-cache.js";
import type { PrefixCache } from "../cache/prefix-cache.js";
import { planOutputs, samplingRow, type StepOutputs } from "./step-outputs.js";
import { PREFILL_THRESHOLD, promptKey, type RowPlan } from "./step-plan.js";

/** Copying a cached token takes as long as the attention of so many tokens to an unused slot. */
const COPY_COST = 8;

/** What the steps of a sampler have in common. */
export interface StepContext {
  readonly model: CausalLM;
  readonly prefixCache: PrefixCache;
  readonly adapter: boolean;
  readonly cache: KvCache;
  readonly session: DecodeSession;
}

/** The requests of a forward pass, and the buffers that it writes. */
interface PreparedStep {
  readonly requests: readonly WorkerRequest[];
  readonly outputs: DecodeOutputs;
  readonly temporaryCache: KvCache | undefined;
}

/** Results for the scored and for the sampled tokens; undefined if there are none. */
interface StepResults {
  readonly scored: ScoreResult | undefined;
  readonly sampled: SampleResult | undefined;
}

/**
 * One forward pass over planned rows, all or none of which start from kept states: processes and
 * caches their tokens, then samples or scores the next ones.
 */
export class DecodeStep {
  /** Rows to compute: of rows with the same cached tokens and the same chunk only the first. */
  private readonly computedRows: readonly RowPlan[];
  /** Offset of each row's chunk among the flat tokens. */
  private readonly starts: readonly number[];
  private readonly planned: StepOutputs;

  constructor(
    private readonly context: StepContext,
    private readonly rows: readonly RowPlan[],
  ) {
    const { computedRows, starts } = dedupePrompts(rows);
    this.computedRows = computedRows;
    this.starts = starts;
    this.planned = planOutputs(rows, starts, context.model.config.vocabSize);
  }

  async run(): Promise<void> {
    this.apply(await this.send(this.prepare()));
  }

  private prepare(): PreparedStep {
    const { model, session, prefixCache, adapter } = this.context;
    const { computedRows, planned } = this;
    const { samples, scores, headTokens } = planned;
    const { copies, cache, temporaryCache } = this.selectCache();
    const selected = headTokens === undefined ? [...samples, ...scores] : [];
    const startsFromStates = computedRows[0].frozenSlots !== undefined;
    const decode = session.prepare({
      rows: computedRows.map(({ rowIndex, sequence, cached, chunk }, i) => ({
        tokens: chunk,
        cacheRow: cache === this.context.cache ? rowIndex : i,
        cachedLength: cached.length,
        sequenceLength: sequence.length,
      })),
      prefixCache: prefixCache.cache,
      prefixLength: prefixCache.tokens.length,
      cache,
      selectedTokens: selected.map(({ flatIndex }) => flatIndex),
      inverseTemperatures: selected.map(({ sequence }) => 1 / (sequence.request?.sampling.temperature || 1)),
      ...(headTokens && { headTokens, constrainedTokens: samples.map(({ flatIndex }) => flatIndex) }),
      ...(startsFromStates && { frozenSlots: computedRows.flatMap(({ frozenSlots }) => frozenSlots!) }),
      adapter,
      model,
    });
    const write = writeCache(
      cacheShape(model.config),
      decode.outputs.newKeyValues,
      this.context.cache,
      this.cacheWrites(),
    );
    const requests = [...copies, ...decode.requests, write, ...this.keepStates(decode.outputs)];
    return { requests, outputs: decode.outputs, temporaryCache };
  }

  /**
   * Returns the cache that the step reads. Prefill uses a temporary one without the other rows and
   * the tokens that are still to come, because attention is computed over all rows and slots.
   */
  private selectCache(): {
    copies: readonly WorkerRequest[];
    cache: KvCache | undefined;
    temporaryCache: KvCache | undefined;
  } {
    const { model, cache } = this.context;
    const { computedRows } = this;
    const isPrefill = this.rows.some(({ chunk }) => chunk.length > PREFILL_THRESHOLD);
    const maxCachedLength = Math.max(...computedRows.map(({ cached }) => cached.length));
    const maxChunkLength = Math.max(...computedRows.map(({ chunk }) => chunk.length));
    const unusedSlots = cache.capacity - maxCachedLength;
    const isFull = unusedSlots * maxChunkLength <= COPY_COST * maxCachedLength;
    if (!isPrefill || (computedRows.length === cache.rows && isFull))
      return { copies: [], cache, temporaryCache: undefined };
    if (maxCachedLength === 0) return { copies: [], cache: undefined, temporaryCache: undefined };
    const shape = cacheShape(model.config);
    const temporaryCache = new KvCache(model.runtime, shape, computedRows.length, maxCachedLength);
    const copies = computedRows.map(({ rowIndex, cached }, i) => ({
      fromRow: rowIndex,
      toRow: i,
      tokenCount: cached.length,
    }));
    return {
      copies: [copyCacheRows(shape, cache, temporaryCache, copies)],
      cache: temporaryCache,
      temporaryCache,
    };
  }

  private cacheWrites(): CacheWrite[] {
    return this.rows.flatMap(({ rowIndex, cached, chunk }, i) =>
      chunk.map((_, k) => ({ flatIndex: this.starts[i] + k, row: rowIndex, position: cached.length + k })),
    );
  }

  /** Returns requests that keep the states of the frozen layers, where the step computes them. */
  private keepStates({ frozenStates }: DecodeOutputs): readonly WorkerRequest[] {
    const { session, prefixCache } = this.context;
    if (frozenStates === undefined) return [];
    const decoded = this.rows.map(({ sequence, cached, chunk }, i) => ({
      cached: [...prefixCache.tokens, ...cached],
      tokens: chunk,
      sequenceLength: sequence.length,
      flatIndex: this.starts[i],
    }));
    return session.frozenStates!.keep(decoded, frozenStates);
  }

  /**
   * Sends all requests in one turn, so that a sampler that shares the session cannot run in
   * between.
   */
  private async send({ requests, outputs, temporaryCache }: PreparedStep): Promise<StepResults> {
    const { runtime } = this.context.model;
    const { samples, scores } = this.planned;
    const unsent = [...requests];
    const scored = scores.length > 0 ? runtime.sequence([...unsent.splice(0), this.scoreRequest(outputs)]) : undefined;
    if (samples.length > 0) unsent.push(this.sampleRequest(outputs));
    const sampled = unsent.length > 0 ? runtime.sequence(unsent) : undefined;
    temporaryCache?.free();
    const [scoreResult, result] = await Promise.all([scored, sampled]);
    return {
      scored: scoreResult as ScoreResult | undefined,
      sampled: samples.length > 0 ? (result as SampleResult) : undefined,
    };
  }

  private scoreRequest({ logits, rawProbabilities }: DecodeOutputs): WorkerRequest {
    const { samples, scores } = this.planned;
    return {
      kind: "kernel",
      call: {
        name: "gatherLogProbs",
        logits: rowRange(logits, samples.length, scores.length),
        rawProbabilities: rowRange(rawProbabilities, samples.length, scores.length),
        tokens: Int32Array.from(scores, ({ target }) => target),
        topLogProbs: scores.map(({ sequence }) => sequence.scoredAlternatives),
      },
    };
  }

  private sampleRequest(outputs: DecodeOutputs): WorkerRequest {
    const { samples, headTokens } = this.planned;
    const { logits, rawProbabilities, probabilities, constrainedLogits, values } = outputs;
    return {
      kind: "kernel",
      call: {
        name: "sample",
        ...(headTokens === undefined
          ? {
              logits: rowRange(logits, 0, samples.length),
              rawProbabilities: rowRange(rawProbabilities, 0, samples.length),
              probabilities: rowRange(probabilities, 0, samples.length),
            }
          : { logits: constrainedLogits, columns: headTokens }),
        values: values && { ...values, shape: [samples.length] },
        rows: samples.map(({ sequence }) => samplingRow(sequence)),
      },
    };
  }

  /** Marks the tokens as processed, and gives the sequences their results. */
  private apply({ scored, sampled }: StepResults): void {
    for (const { row, sequence, cached, chunk, unprocessed, regime, frozenSlots } of this.rows) {
      row.tokens.length = cached.length;
      for (const token of chunk) row.tokens.push(token);
      row.regime = regime;
      row.lacksFrozenLayers = frozenSlots !== undefined;
      sequence.unprocessedTokens = unprocessed.slice(chunk.length);
    }
    const { samples, scores } = this.planned;
    scored?.logProbs.forEach((logProb, i) => scores[i].sequence.appendScore(logProb, scored.topLogProbs[i] ?? []));
    if (sampled === undefined) return;
    samples.forEach(({ sequence }, i) => {
      try {
        sequence.appendToken({
          token: sampled.tokens[i],
          logProb: sampled.logProbs[i],
          rawLogProb: sampled.rawLogProbs[i],
          value: sampled.values?.[i] ?? NaN,
          distribution: sampled.distributions[i],
          keptTokens: sampled.keptTokens[i],
          topLogProbs: sampled.topLogProbs[i],
        });
        sequence.appendForcedTokens();
      } catch (error) {
        sequence.fail(error as Error);
      }
    });
  }
}

/**
 * Returns the rows to compute and the offset of each row's chunk among the flat tokens; equal long
 * prompts are computed once.
 */
function dedupePrompts(rows: readonly RowPlan[]): { computedRows: RowPlan[]; starts: number[] } {
  const computedRows: RowPlan[] = [];
  const startByKey = new Map<string, number>();
  let flatIndex = 0;
  const starts = rows.map((row, i) => {
    const key = row.chunk.length > PREFILL_THRESHOLD ? promptKey(row) : `row ${i}`;
    const start = startByKey.get(key) ?? flatIndex;
    if (startByKey.has(key)) return start;
    startByKey.set(key, start);
    computedRows.push(row);
    flatIndex += row.chunk.length;
    return start;
  });
  return { computedRows, starts };
}

/** Returns `count` rows of scores over the vocabulary, from row `start` on. */
function rowRange(view: BufferView, start: number, count: number): BufferView {
  const [, width] = view.shape;
  return { ...view, offset: view.offset + start * width, shape: [count, width] };
}
