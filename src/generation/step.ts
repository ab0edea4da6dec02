import type { CausalLM } from "../models/causal-lm.js";
import type { SampleResult } from "../runtime/kernels.js";
import type { Request } from "../runtime/protocol.js";
import type { CachedModel, RowTokens } from "./cached-model.js";
import { append, appendForced, sequenceLength, type Job } from "./job.js";
import { cacheShape, KvCache, moveRows, storeTokens, type NewToken } from "./kv-cache.js";
import type { PrefixStore } from "./prefix-store.js";
import type { Slot } from "./rows.js";

/** Tokens of one row that are read at once; longer prompts take several steps. */
export const MAX_ROW_TOKENS = 512;

/** A row with no more tokens to read than this runs along with those that read their newest one. */
export const FEW_TOKENS = 8;

export interface RunningRow {
  readonly slot: Slot;
  readonly row: number;
  readonly job: Job;
}

/** One run of the model over some rows: reads their pending tokens, keeps them, and draws or scores what follows. */
export class Step {
  constructor(
    private readonly model: CausalLM,
    private readonly cached: CachedModel,
    private readonly cache: KvCache,
    private readonly prefix: PrefixStore,
    private readonly running: readonly RunningRow[],
    private readonly adapter: boolean,
  ) {}

  async run(): Promise<void> {
    const { runtime, config } = this.model;
    const shape = cacheShape(config);
    const chunks = this.running.map(({ job }) => job.pending.slice(0, MAX_ROW_TOKENS));
    const { reading, starts } = this.lay(chunks);
    // Reading rows run in a cache of their own, without the rows that do not read: attention costs by the row.
    const compact = reading.length < this.cache.rows && chunks.some((chunk) => chunk.length > FEW_TOKENS);
    const longest = Math.max(...reading.map(({ slot }) => slot.tokens.length));
    const temporary = compact && longest > 0 ? new KvCache(runtime, shape, reading.length, longest) : undefined;
    const rows: RowTokens[] = reading.map(({ slot, row, job, chunk }, i) => ({
      tokens: chunk,
      slot: compact ? i : row,
      cached: slot.tokens.length,
      sequenceLength: sequenceLength(job),
    }));

    const plan = this.plan(chunks, starts);
    const { request, outputs } = this.cached.prepare({
      rows,
      prefix: this.prefix.cache,
      prefixLength: this.prefix.tokens.length,
      cache: compact ? temporary : this.cache,
      select: [...plan.draws, ...plan.scores].map(({ flat }) => flat),
      inverseTemperatures: [...plan.draws, ...plan.scores].map(({ job }) => 1 / (job.reply?.settings.temperature || 1)),
      adapter: this.adapter,
    });
    const requests: Request[] = [];
    if (temporary !== undefined) {
      const moves = reading.map(({ slot, row }, i) => ({ fromRow: row, toRow: i, tokens: slot.tokens.length }));
      requests.push(moveRows(shape, this.cache, temporary, moves));
    }
    requests.push(request, storeTokens(shape, outputs.fresh, this.cache, this.newTokens(chunks, starts)));
    const head = (view: typeof outputs.plain, start: number, count: number) => ({
      ...view,
      offset: view.offset + start * config.vocabSize,
      shape: [count, config.vocabSize],
    });
    const { draws, scores } = plan;
    if (scores.length > 0) {
      const tokens = Int32Array.from(scores, ({ target }) => target);
      requests.push({
        kind: "kernel",
        call: {
          name: "pickLogProbs",
          logits: head(outputs.logits, draws.length, scores.length),
          plain: head(outputs.plain, draws.length, scores.length),
          tokens,
        },
      });
    }
    // Both go out in one turn: a sampler that shares the session must not run in between.
    const picked = scores.length > 0 ? runtime.sequence(requests.splice(0)) : undefined;
    if (draws.length > 0) {
      requests.push({
        kind: "kernel",
        call: {
          name: "sample",
          logits: head(outputs.logits, 0, draws.length),
          plain: head(outputs.plain, 0, draws.length),
          tempered: head(outputs.tempered, 0, draws.length),
          values: outputs.values && { ...outputs.values, shape: [draws.length] },
          rows: draws.map(({ job }) => rowSampling(job)),
        },
      });
    }
    const drawn = requests.length > 0 ? runtime.sequence(requests) : undefined;
    temporary?.free();
    const [logProbs, result] = await Promise.all([picked, drawn]);
    this.running.forEach(({ slot, job }, i) => {
      for (const token of chunks[i]) slot.tokens.push(token);
      job.pending = job.pending.slice(chunks[i].length);
    });
    if (scores.length > 0)
      (logProbs as Float64Array).forEach((logProb, i) => scores[i].job.plainLogProbs.push(logProb));
    if (draws.length > 0) this.append(draws, result as SampleResult);
  }

  /**
   * The rows that read their chunk, and for each row where its chunk starts among the run's flat tokens: of rows that have the
   * same prompt to read behind the same tokens only the first reads it.
   */
  private lay(chunks: readonly (readonly number[])[]): {
    reading: (RunningRow & { chunk: readonly number[] })[];
    starts: number[];
  } {
    const reading: (RunningRow & { chunk: readonly number[] })[] = [];
    const known = new Map<string, number>();
    let flat = 0;
    const starts = this.running.map((each, i) => {
      const chunk = chunks[i];
      const { slot, job } = each;
      const key =
        chunk.length > FEW_TOKENS ? `${sequenceLength(job)}:${slot.tokens.join()}:${chunk.join()}` : `row ${i}`;
      const start = known.get(key) ?? flat;
      if (known.has(key)) return start;
      known.set(key, start);
      reading.push({ ...each, chunk });
      flat += chunk.length;
      return start;
    });
    return { reading, starts };
  }

  /** Which flat tokens are followed by a draw, and which by a token to be scored. */
  private plan(
    chunks: readonly (readonly number[])[],
    starts: readonly number[],
  ): {
    draws: { job: Job; flat: number }[];
    scores: { job: Job; flat: number; target: number }[];
  } {
    const draws: { job: Job; flat: number }[] = [];
    const scores: { job: Job; flat: number; target: number }[] = [];
    this.running.forEach(({ job }, i) => {
      const [chunk, flat] = [chunks[i], starts[i]];
      const left = job.pending.length - chunk.length;
      if (job.reply !== undefined) {
        if (left === 0) draws.push({ job, flat: flat + chunk.length - 1 });
      } else {
        // The last target follows the last pending token, and so on backwards.
        chunk.forEach((_, k) => {
          const target = job.targets.length - 1 - (left + chunk.length - 1 - k);
          if (target >= 0) scores.push({ job, flat: flat + k, target: job.targets[target] });
        });
      }
    });
    return { draws, scores };
  }

  private newTokens(chunks: readonly (readonly number[])[], starts: readonly number[]): NewToken[] {
    return this.running.flatMap(({ slot, row }, i) =>
      chunks[i].map((_, k) => ({ flat: starts[i] + k, row, at: slot.tokens.length + k })),
    );
  }

  private append(
    draws: readonly { job: Job }[],
    { tokens, logProbs, plainLogProbs, values, distributions }: SampleResult,
  ): void {
    draws.forEach(({ job }, i) => {
      const [token, logProb, plainLogProb, distribution] = [tokens[i], logProbs[i], plainLogProbs[i], distributions[i]];
      append(job, { token, logProb, plainLogProb, value: values?.[i] ?? NaN, distribution });
      appendForced(job);
    });
  }
}

function rowSampling({ reply, prompt, tokens }: Job) {
  const { settings, random, constraint } = reply!;
  const penalised = settings.repetitionPenalty !== 1;
  return {
    settings,
    uniform: settings.temperature === 0 ? 0 : random(),
    seen: penalised ? Int32Array.from([...prompt, ...tokens]) : new Int32Array(0),
    allowed: constraint?.allowed(tokens),
    keepsDistribution: reply!.onDistribution !== undefined,
  };
}
