import { getRopeRegime, type DecoderConfig } from "../../engine/nn/index.js";
import type { FrozenStates } from "../../models/graphs/index.js";
import type { CacheRow } from "./kv-cache-rows.js";
import type { RunningSequence } from "./running-sequence.js";

/**
 * Maximum number of tokens of a row in one step; longer prompts take several. Rows with prompts of
 * fewer tokens share a step up to this number, because longer steps are slower per token
 * (docs/decisions/short-passes.md).
 */
const MAX_CHUNK_TOKENS = 512;

/**
 * A row with at most this many unprocessed tokens runs together with rows that process one token.
 */
export const PREFILL_THRESHOLD = 8;

/** A row of the cache and the sequence that runs in it. */
export interface ActiveRow {
  readonly row: CacheRow;
  readonly rowIndex: number;
  readonly sequence: RunningSequence;
}

/** A row with the tokens that the next step reads from its cache and those that it computes. */
export interface RowPlan extends ActiveRow {
  /**
   * Cached tokens after the prefix; none if the step discards them and computes all tokens again.
   */
  readonly cached: readonly number[];
  /** All tokens of the sequence after the cached ones. */
  readonly unprocessed: readonly number[];
  /** The first unprocessed tokens, which the step computes. */
  readonly chunk: readonly number[];
  /** Regime of rotary frequencies; see getRopeRegime. */
  readonly regime: number;
  /**
   * Slots of the kept states of the chunk, from which the step starts; undefined if it starts from
   * tokens.
   */
  readonly frozenSlots: readonly number[] | undefined;
}

/** The rows that the next step advances, in two passes. */
export interface StepPlan {
  readonly fromStates: readonly RowPlan[];
  readonly fromTokens: readonly RowPlan[];
}

interface PlanContext {
  readonly config: Pick<DecoderConfig, "ropes">;
  /** Tokens before all rows. */
  readonly prefix: readonly number[];
  readonly frozenStates: Pick<FrozenStates, "find"> | undefined;
}

/**
 * Plans the next step: it prefills the rows with long prompts, or else advances every row. The plan
 * changes nothing and holds until states are discarded, so a step must be sent in the same turn of
 * the event loop.
 */
export function planStep(rows: readonly ActiveRow[], context: PlanContext): StepPlan {
  const plans = rows.map((row) => planRow(row, context));
  const prefilling = plans.filter(({ unprocessed }) => unprocessed.length > PREFILL_THRESHOLD);
  const selected = prefilling.length > 0 ? selectPrefill(prefilling) : plans;
  return {
    fromStates: selected.filter(({ frozenSlots }) => frozenSlots !== undefined),
    fromTokens: selected.filter(({ frozenSlots }) => frozenSlots === undefined),
  };
}

/**
 * Plans one row. Its cached tokens are computed again if the sequence has grown into other rotary
 * frequencies, or if the row started from kept states before and cannot now, because the keys and
 * values of its frozen layers are missing.
 */
function planRow(active: ActiveRow, { config, prefix, frozenStates }: PlanContext): RowPlan {
  const { row, sequence } = active;
  const regime = getRopeRegime(config.ropes, sequence.length);
  const isStale = row.regime !== regime;
  const lacksFrozenLayers = row.lacksFrozenLayers && !isStale;
  const plan = (isRecomputed: boolean, slots?: readonly number[]): RowPlan => {
    const unprocessed = isRecomputed ? [...row.tokens, ...sequence.unprocessedTokens] : sequence.unprocessedTokens;
    // A step without tokens would be repeated for ever.
    if (unprocessed.length === 0) throw new Error(`A sequence of ${sequence.length} tokens has none left to compute.`);
    const shared = unprocessed.length - sequence.ownLength;
    const isSplit = sequence.ownLength <= PREFILL_THRESHOLD && shared > PREFILL_THRESHOLD;
    const chunk = unprocessed.slice(0, Math.min(isSplit ? shared : unprocessed.length, MAX_CHUNK_TOKENS));
    const frozenSlots = slots?.slice(0, chunk.length);
    return { ...active, cached: isRecomputed ? [] : row.tokens, unprocessed, chunk, regime, frozenSlots };
  };
  const fromTokens = plan(isStale);
  const { cached, unprocessed: tokens } = fromTokens;
  const isDecoding = cached.length > 0 && tokens.length <= PREFILL_THRESHOLD;
  if (isDecoding && !lacksFrozenLayers) return fromTokens;
  const slots = frozenStates?.find({ cached: [...prefix, ...cached], tokens, sequenceLength: sequence.length });
  if (slots !== undefined) return plan(isStale, slots);
  return lacksFrozenLayers ? plan(true) : fromTokens;
}

/**
 * Returns the rows with long prompts that are prefilled in one step: together at most
 * `MAX_CHUNK_TOKENS` tokens, at least one row. Equal prompts count once.
 */
function selectPrefill(rows: readonly RowPlan[]): RowPlan[] {
  const keys = new Set<string>();
  let tokenCount = 0;
  return rows.filter((row) => {
    const key = promptKey(row);
    if (keys.has(key)) return true;
    const newCount = tokenCount + row.chunk.length;
    if (keys.size > 0 && newCount > MAX_CHUNK_TOKENS) return false;
    keys.add(key);
    tokenCount = newCount;
    return true;
  });
}

/**
 * Rows with the same key have the same cached tokens and compute the same ones, so one of them is
 * computed for all.
 */
export function promptKey({ regime, cached, chunk }: RowPlan): string {
  return `${regime}:${cached.join()}:${chunk.join()}`;
}
