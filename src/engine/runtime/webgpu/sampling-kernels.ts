import { LlamaGymError } from "../../../core/errors.js";
import type { CpuKernelCall, SampleResult, SamplingRow, ScoreResult } from "../kernels/run-kernel.js";
import { notFiniteError } from "../kernels/sampling.js";
import type { BufferView } from "../buffer-view.js";
import { defineKernel } from "./define-kernel.js";
import type { Location } from "./gpu-executor.js";
import type { DeviceBuffer } from "./gpu-pipelines.js";
import type { GpuContext } from "./plan-builder.js";

type SampleCall = Extract<CpuKernelCall, { name: "sample" }>;
type ScoreCall = Extract<CpuKernelCall, { name: "gatherLogProbs" }>;

const THREADS = 256;
/** Words of a row's sampling parameters. */
const ROW_WORDS = 12;
/** Words of a row's result: token, log-probability and raw log-probability. */
const RESULT_WORDS = 3;

/**
 * Probabilities are compared in buckets by their highest bits, as on the processor, so that draws
 * come out in the same order.
 */
const BUCKET_SHIFT = 19;

/** Functions of a workgroup that combine a value of each thread. */
const COMBINE = `
var<workgroup> parts: array<f32, ${THREADS}>;
var<workgroup> places: array<u32, ${THREADS}>;
fn sum_all(thread: u32, value: f32) -> f32 {
  parts[thread] = value; workgroupBarrier();
  for (var step = ${THREADS / 2}u; step > 0u; step /= 2u) {
    if (thread < step) { parts[thread] += parts[thread + step]; } workgroupBarrier(); }
  let result = workgroupUniformLoad(&parts[0]); workgroupBarrier(); return result; }
fn max_all(thread: u32, value: f32) -> f32 {
  parts[thread] = value; workgroupBarrier();
  for (var step = ${THREADS / 2}u; step > 0u; step /= 2u) {
    if (thread < step) { parts[thread] = max(parts[thread], parts[thread + step]); } workgroupBarrier(); }
  let result = workgroupUniformLoad(&parts[0]); workgroupBarrier(); return result; }
fn min_place(thread: u32, value: u32) -> u32 {
  places[thread] = value; workgroupBarrier();
  for (var step = ${THREADS / 2}u; step > 0u; step /= 2u) {
    if (thread < step) { places[thread] = min(places[thread], places[thread + step]); } workgroupBarrier(); }
  let result = workgroupUniformLoad(&places[0]); workgroupBarrier(); return result; }`;

/**
 * Copies a row's candidates: all logits, or those of its allowed tokens. Parameters: width,
 * candidates per row.
 */
const GATHER = defineKernel(
  "sample: gather",
  THREADS,
  [
    ["logits", "read"],
    ["rows", "read", "i32"],
    ["lists", "read", "i32"],
    ["weights", "write"],
  ],
  `let count = u32(rows(group * ${ROW_WORDS}u + 5u)); let list = rows(group * ${ROW_WORDS}u + 6u);
   for (var i = thread; i < count; i += ${THREADS}u) {
     var at = i; if (list >= 0) { at = u32(lists(u32(list) + i)); }
     set_weights(group * $1 + i, logits(group * $0 + at)); }`,
);

/** Applies the repetition penalty to the candidates at given places. */
const PENALIZE = defineKernel(
  "sample: penalize",
  THREADS,
  [
    ["rows", "read", "i32"],
    ["lists", "read", "i32"],
    ["weights", "write"],
  ],
  `let penalty = bitcast<f32>(rows(group * ${ROW_WORDS}u + 4u)); let list = u32(rows(group * ${ROW_WORDS}u + 7u));
   let count = u32(rows(group * ${ROW_WORDS}u + 8u));
   for (var i = thread; i < count; i += ${THREADS}u) {
     let at = group * $0 + u32(lists(list + i)); let x = weights(at);
     set_weights(at, select(x / penalty, x * penalty, x < 0.0)); }`,
);

/**
 * Largest threshold, by its bits, from which on the kept weights still fulfil a condition on their
 * sum or number.
 */
const bisect = (measure: string, condition: string) =>
  `var bits = 0u;
   for (var bit = 0x40000000u; bit > 0u; bit /= 2u) {
     let trial = bits | bit; var part = 0.0;
     for (var i = thread; i < count; i += ${THREADS}u) { let w = weights(start + i);
       if (w >= floor_value && bitcast<u32>(w) >= trial) { part += ${measure}; } }
     let measured = sum_all(thread, part); if (${condition}) { bits = trial; } }`;

/**
 * Draws a token per row among its candidates: those above the edge of top-p in their order, the
 * others from the most probable on, as the processor does. Parameters: candidates per row.
 */
const DRAW = defineKernel(
  "sample: draw",
  THREADS,
  [
    ["rows", "read", "i32"],
    ["weights", "write"],
    ["results", "write"],
  ],
  `let row = group * ${ROW_WORDS}u; let start = group * $0; let count = u32(rows(row + 5u));
   let temperature = bitcast<f32>(rows(row)); let top_k = u32(rows(row + 1u)); let top_p = bitcast<f32>(rows(row + 2u));
   let min_p = bitcast<f32>(rows(row + 3u)); let uniform_number = bitcast<f32>(rows(row + 9u));
   var largest = -3.40282346e38; var best = count;
   for (var i = thread; i < count; i += ${THREADS}u) { let x = weights(start + i);
     if (x > largest) { largest = x; best = i; } }
   let max_logit = max_all(thread, largest);
   let first_best = min_place(thread, select(count, best, largest == max_logit));
   if (thread == 0u) { is_greedy = select(0u, 1u, temperature == 0.0); }
   workgroupBarrier();
   if (workgroupUniformLoad(&is_greedy) == 1u) {
     if (thread == 0u) { set_results(group * ${RESULT_WORDS}u, bitcast<f32>(first_best)); set_results(group * ${RESULT_WORDS}u + 1u, 0.0); }
     return; }
   var part = 0.0;
   for (var i = thread; i < count; i += ${THREADS}u) { let e = exp((weights(start + i) - max_logit) / temperature);
     set_weights(start + i, e); part += e; }
   let total = sum_all(thread, part);
   for (var i = thread; i < count; i += ${THREADS}u) { set_weights(start + i, weights(start + i) / total); }
   workgroupBarrier();
   var floor_value = 0.0; var ties = 0xffffffffu; var sorted_below = 0u;
   if (thread == 0u) { filters[0] = select(0u, 1u, top_k > 0u && top_k < count); filters[1] = select(0u, 1u, top_p < 1.0); }
   workgroupBarrier();
   if (workgroupUniformLoad(&filters[0]) == 1u) {
     ${bisect("1.0", "measured >= f32(top_k)")}
     floor_value = bitcast<f32>(bits); }
   if (workgroupUniformLoad(&filters[1]) == 1u) {
     part = 0.0;
     for (var i = thread; i < count; i += ${THREADS}u) { let w = weights(start + i); if (w >= floor_value) { part += w; } }
     let mass = sum_all(thread, part); let goal = top_p * mass;
     ${bisect("w", "measured >= goal")}
     let edge = max(floor_value, bitcast<f32>(bits)); part = 0.0;
     for (var i = thread; i < count; i += ${THREADS}u) { let w = weights(start + i); if (w > edge) { part += w; } }
     let above = sum_all(thread, part);
     ties = max(select(0u, 1u, above == 0.0), u32(ceil((goal - above) / edge)));
     floor_value = edge;
     sorted_below = ((bitcast<u32>(edge) >> ${BUCKET_SHIFT}u) + 1u) << ${BUCKET_SHIFT}u;
     if (workgroupUniformLoad(&filters[0]) == 1u) { sorted_below = 0xffffffffu; } }
   let least = min_p * (1.0 / total); let length = (count + ${THREADS - 1}u) / ${THREADS}u;
   let own_start = min(thread * length, count); let own_end = min(own_start + length, count);
   var own_ties = 0u;
   for (var i = own_start; i < own_end; i++) { if (weights(start + i) == floor_value) { own_ties++; } }
   places[thread] = own_ties; workgroupBarrier();
   var rank = 0u;
   if (ties != 0xffffffffu) { for (var i = 0u; i < thread; i++) { rank += places[i]; } }
   part = 0.0; var sorted_part = 0.0;
   for (var i = own_start; i < own_end; i++) { var w = weights(start + i);
     if (w == floor_value) { if (rank >= ties) { w = 0.0; } rank++; }
     if (w < floor_value || w < least) { w = 0.0; }
     set_weights(start + i, w);
     if (bitcast<u32>(w) >= sorted_below) { part += w; } else { sorted_part += w; } }
   let sorted_mass = sum_all(thread, sorted_part);
   parts[thread] = part; workgroupBarrier();
   if (thread == 0u) {
     var unsorted_mass = 0.0; for (var i = 0u; i < ${THREADS}u; i++) { unsorted_mass += parts[i]; }
     let mass = unsorted_mass + sorted_mass;
     var rest = uniform_number * mass; var chunk = 0u; var last_chunk = 0u; var is_found = false;
     shared_mass = mass; shared_rest = rest - unsorted_mass;
     is_sorted = select(0u, 1u, sorted_mass > 0.0 && rest >= unsorted_mass);
     for (var i = 0u; i < ${THREADS}u && !is_found; i++) {
       if (parts[i] > 0.0) { last_chunk = i; if (rest < parts[i]) { is_found = true; chunk = i; } else { rest -= parts[i]; } } }
     if (!is_found) { chunk = last_chunk; rest = 3.0e38; }
     var drawn = 0xffffffffu; var weight = 0.0;
     let end = min((chunk + 1u) * length, count);
     for (var i = chunk * length; i < end; i++) { let w = weights(start + i);
       if (w > 0.0 && bitcast<u32>(w) >= sorted_below) { drawn = i; weight = w; rest -= w; if (rest < 0.0) { break; } } }
     set_results(group * ${RESULT_WORDS}u, bitcast<f32>(drawn)); set_results(group * ${RESULT_WORDS}u + 1u, log(weight / mass)); }
   workgroupBarrier();
   if (workgroupUniformLoad(&is_sorted) == 1u) {
     var rest = workgroupUniformLoad(&shared_rest); var before = 3.0e38; var place = 0u; var weight = 0.0; var drawn = 0xffffffffu;
     loop {
       var own = 0.0; var own_place = count;
       for (var i = thread; i < count; i += ${THREADS}u) { let w = weights(start + i);
         let is_next = w < before || (w == before && i > place);
         if (w > own && bitcast<u32>(w) < sorted_below && is_next) { own = w; own_place = i; } }
       let next = max_all(thread, own);
       if (next <= 0.0) { break; }
       place = min_place(thread, select(count, own_place, own == next)); before = next;
       drawn = place; weight = next; rest -= next;
       if (rest < 0.0) { break; } }
     if (thread == 0u) {
       set_results(group * ${RESULT_WORDS}u, bitcast<f32>(drawn)); set_results(group * ${RESULT_WORDS}u + 1u, log(weight / shared_mass)); } }`,
  `${COMBINE}\nvar<workgroup> is_greedy: u32; var<workgroup> is_sorted: u32; var<workgroup> shared_rest: f32; var<workgroup> shared_mass: f32;\nvar<workgroup> filters: array<u32, 2>;`,
);

/**
 * Writes log-probabilities of tokens at temperature 1. Parameters: width, words between results,
 * whether results name candidates.
 */
const SCORE = defineKernel(
  "score",
  THREADS,
  [
    ["logits", "read"],
    ["raw", "read"],
    ["rows", "read", "i32"],
    ["lists", "read", "i32"],
    ["results", "write"],
  ],
  `let start = group * $0; var token = 0u;
   if ($2 == 1u) {
     let at = bitcast<u32>(results(group * $1)); let list = rows(group * ${ROW_WORDS}u + 6u);
     token = at; if (list >= 0) { token = u32(lists(u32(list) + at)); }
   } else { token = u32(rows(group)); }
   var largest_logit = -3.40282346e38; var largest = 0.0;
   for (var i = thread; i < $0; i += ${THREADS}u) { largest_logit = max(largest_logit, logits(start + i)); largest = max(largest, raw(start + i)); }
   let max_logit = max_all(thread, largest_logit); let max_raw = max_all(thread, largest);
   if (thread == 0u) {
     let at = min(token, $0 - 1u); let own = raw(start + at);
     let exact = log(own); let shifted = logits(start + at) - max_logit + log(max_raw);
     set_results(group * $1 + $3, select(shifted, exact, own >= 1e-30)); }`,
  COMBINE,
);

const bits = (value: number): number => new Int32Array(Float32Array.of(value).buffer)[0];

/** Samples and scores tokens on the device; only tokens and log-probabilities are read back. */
export class SamplingKernels {
  private scratch: DeviceBuffer | undefined;

  constructor(private readonly context: GpuContext) {}

  /**
   * Whether the device returns all that a call asks for; distributions and their parts are computed
   * on the host.
   */
  canSample({ rows }: SampleCall): boolean {
    return rows.every((row) => !row.returnsDistribution && !row.returnsKeptTokens && row.topLogProbs === 0);
  }

  canScore({ topLogProbs }: ScoreCall): boolean {
    return topLogProbs.every((count) => count === 0);
  }

  /** @throws RUNTIME_FAILED when the logits are not finite. */
  async sample({ logits, rawProbabilities, columns, values, rows }: SampleCall): Promise<SampleResult> {
    const { executor } = this.context;
    const locate = (view: BufferView) => this.context.locate(view);
    const width = logits.shape[1];
    const lists = new CandidateLists(columns);
    const words = rows.flatMap((row) => lists.addRow(row, width));
    const stride = Math.max(1, ...rows.map(({ allowedTokens }) => allowedTokens?.length ?? width));
    const resultWords = rows.length * RESULT_WORDS;
    const { weights, results } = this.reserve(rows.length * stride, resultWords);
    const rowData = executor.uploadTransient(Uint32Array.from(words));
    const listData = executor.uploadTransient(Uint32Array.from(lists.words));
    executor.run(GATHER, [locate(logits), rowData, listData, weights], [width, stride], rows.length);
    if (rows.some(({ sampling }) => sampling.repetitionPenalty !== 1))
      executor.run(PENALIZE, [rowData, listData, weights], [stride], rows.length);
    executor.run(DRAW, [rowData, weights, results], [stride], rows.length);
    if (rawProbabilities !== undefined) {
      const locations = [locate(logits), locate(rawProbabilities), rowData, listData, results];
      executor.run(SCORE, locations, [width, RESULT_WORDS, 1, 2], rows.length);
    }
    const ranges = [{ ...results, words: resultWords }];
    if (values !== undefined) ranges.push({ ...locate(values), words: rows.length });
    const [drawn, valueWords] = await executor.read(ranges);
    return this.toResult(rows, lists, { drawn, width, hasRaw: rawProbabilities !== undefined }, valueWords);
  }

  private toResult(
    rows: readonly SamplingRow[],
    lists: CandidateLists,
    { drawn, width, hasRaw }: { readonly drawn: Uint32Array; readonly width: number; readonly hasRaw: boolean },
    valueWords: Uint32Array | undefined,
  ): SampleResult {
    const floats = new Float32Array(drawn.buffer, drawn.byteOffset, drawn.length);
    const counts = rows.map(({ allowedTokens }) => allowedTokens?.length ?? width);
    const isMissing = (i: number) => drawn[i * RESULT_WORDS] >= counts[i];
    const logProbIndices = hasRaw ? [1, 2] : [1];
    const isNaNLogProb = (i: number) => logProbIndices.some((k) => Number.isNaN(floats[i * RESULT_WORDS + k]));
    if (rows.some((_, i) => isMissing(i) || isNaNLogProb(i))) throw notFiniteError();
    return {
      tokens: Int32Array.from(rows, ({ allowedTokens }, i) => {
        const place = drawn[i * RESULT_WORDS];
        return allowedTokens === undefined ? lists.token(place) : allowedTokens[place];
      }),
      logProbs: Float64Array.from(rows, (_, i) => floats[i * RESULT_WORDS + 1]),
      rawLogProbs: Float64Array.from(rows, (_, i) => (hasRaw ? floats[i * RESULT_WORDS + 2] : NaN)),
      values: valueWords && new Float32Array(valueWords.slice().buffer),
      distributions: [],
      keptTokens: [],
      topLogProbs: [],
    };
  }

  /** @throws RUNTIME_FAILED when the logits are not finite. */
  async score({ logits, rawProbabilities, tokens }: ScoreCall): Promise<ScoreResult> {
    const { executor } = this.context;
    const locate = (view: BufferView) => this.context.locate(view);
    const { results } = this.reserve(0, tokens.length);
    const tokenData = executor.uploadTransient(Uint32Array.from(tokens));
    const locations = [locate(logits), locate(rawProbabilities), tokenData, tokenData, results];
    executor.run(SCORE, locations, [logits.shape[1], 1, 0, 0], tokens.length);
    const [words] = await executor.read([{ ...results, words: tokens.length }]);
    const logProbs = Float64Array.from(new Float32Array(words.slice().buffer));
    if (logProbs.some(Number.isNaN)) throw notFiniteError();
    return { logProbs, topLogProbs: [] };
  }

  /** Returns memory for the candidates' weights and for results. */
  private reserve(weightWords: number, resultWords: number): { weights: Location; results: Location } {
    const { executor } = this.context;
    const padded = Math.ceil(resultWords / 64) * 64;
    const needed = padded + weightWords;
    if (this.scratch === undefined || this.scratch.words < needed) {
      if (this.scratch !== undefined) executor.destroyBuffer(this.scratch);
      this.scratch = executor.createBuffer(Math.ceil(needed * 1.25));
    }
    return { results: { buffer: this.scratch, start: 0 }, weights: { buffer: this.scratch, start: padded } };
  }
}

/** Lists of candidates and of seen tokens, as places in a row of logits; rows share equal lists. */
class CandidateLists {
  readonly words: number[] = [];
  private readonly starts = new Map<Int32Array, number>();
  private readonly columnOf: ReadonlyMap<number, number> | undefined;

  constructor(private readonly columns: readonly number[] | undefined) {
    this.columnOf = columns && new Map(columns.map((token, column) => [token, column]));
  }

  /** Returns the token at a place of a row without a list. */
  token(place: number): number {
    return this.columns === undefined ? place : this.columns[place];
  }

  /** Adds a row's lists and returns its parameters. */
  addRow({ sampling, uniform, seenTokens, allowedTokens }: SamplingRow, width: number): number[] {
    const { temperature, topK, topP, minP, repetitionPenalty } = sampling;
    if (allowedTokens?.length === 0) throw new LlamaGymError("RUNTIME_FAILED", "No token is allowed.");
    const list = allowedTokens === undefined ? -1 : this.addList(allowedTokens);
    const seen = repetitionPenalty === 1 ? [] : this.findSeen(seenTokens, allowedTokens);
    const seenStart = this.words.length;
    this.words.push(...seen);
    const floats = [temperature, topP, minP, repetitionPenalty].map(bits);
    return [
      floats[0],
      topK,
      floats[1],
      floats[2],
      floats[3],
      allowedTokens?.length ?? width,
      list,
      seenStart,
      seen.length,
      bits(uniform),
      0,
      0,
    ];
  }

  private addList(tokens: Int32Array): number {
    const known = this.starts.get(tokens);
    if (known !== undefined) return known;
    const start = this.words.length;
    for (const token of tokens) this.words.push(this.columnOf?.get(token) ?? token);
    this.starts.set(tokens, start);
    return start;
  }

  /** Returns the places of seen tokens among the candidates. */
  private findSeen(seenTokens: Int32Array, allowedTokens: Int32Array | undefined): number[] {
    const distinct = [...new Set(seenTokens)];
    if (allowedTokens === undefined)
      return this.columnOf === undefined ? distinct : distinct.flatMap((token) => this.columnOf!.get(token) ?? []);
    const places = new Map(Array.from(allowedTokens, (token, place) => [token, place]));
    return distinct.flatMap((token) => places.get(token) ?? []);
  }
}
