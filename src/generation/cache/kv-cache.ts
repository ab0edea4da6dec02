import { LlamaGymError } from "../../core/errors.js";
import { type Runtime, type WorkerRequest, subview, type BufferView } from "../../engine/runtime/index.js";
import type { DecoderConfig } from "../../engine/nn/index.js";

/** Capacity grows by this many tokens at a time; unused capacity costs attention time. */
const CAPACITY_INCREMENT = 32;

type CacheShape = Pick<DecoderConfig, "keyValueHeads" | "headDim"> & { readonly layers: number };

/**
 * Keys and values of all layers in one buffer: for each layer keys, then values, each
 * [1, keyValueHeads, rows, capacity, headDim]. A shared prefix is a cache of one row.
 */
export class KvCache {
  readonly buffer: BufferView;

  constructor(
    private readonly runtime: Runtime,
    private readonly shape: CacheShape,
    readonly rows: number,
    readonly capacity: number,
  ) {
    const { layers, keyValueHeads, headDim } = shape;
    this.buffer = runtime.allocate("float32", [layers * 2 * keyValueHeads * rows * capacity * headDim]);
  }

  /** Returns the keys or values of a layer. */
  layerView(layer: number, kind: "key" | "value"): BufferView {
    const { keyValueHeads, headDim } = this.shape;
    const { rows, capacity } = this;
    const section = 2 * layer + (kind === "key" ? 0 : 1);
    return subview(this.buffer, section * this.sectionSize, [1, keyValueHeads, rows, capacity, headDim]);
  }

  /** Returns the keys and values of a layer and all above it. */
  from(layer: number): BufferView {
    return subview(this.buffer, 2 * layer * this.sectionSize, [2 * (this.shape.layers - layer) * this.sectionSize]);
  }

  /** Number of elements of one layer's keys or values. */
  get sectionSize(): number {
    const { keyValueHeads, headDim } = this.shape;
    return keyValueHeads * this.rows * this.capacity * headDim;
  }

  /** Throws unless a row has the tokens of a range. */
  checkRange(row: number, firstToken: number, tokenCount: number): void {
    const isInside = row >= 0 && row < this.rows && firstToken >= 0 && firstToken + tokenCount <= this.capacity;
    if (isInside) return;
    throw new LlamaGymError(
      "INVALID_STATE",
      `Tokens ${firstToken} to ${firstToken + tokenCount} of row ${row} are outside of a key-value cache of ` +
        `${this.rows} rows of ${this.capacity} tokens.`,
    );
  }

  free(): void {
    this.runtime.free(this.buffer);
  }
}

/** A range of tokens of a row, and its destination in another cache. */
export interface CacheCopy {
  readonly fromRow: number;
  readonly toRow: number;
  readonly fromToken?: number;
  readonly toToken?: number;
  readonly tokenCount: number;
}

/**
 * Copies tokens of rows from one cache into another, in all layers.
 *
 * @throws INVALID_STATE for tokens outside of a row: the bounds of the buffer alone would let them
 * overwrite the next row.
 */
export function copyCacheRows(
  shape: CacheShape,
  source: KvCache,
  target: KvCache,
  copies: readonly CacheCopy[],
): WorkerRequest {
  const { keyValueHeads, headDim } = shape;
  const plan: number[] = [];
  for (const { fromRow, toRow, fromToken = 0, toToken = 0, tokenCount } of copies) {
    if (tokenCount === 0) continue;
    source.checkRange(fromRow, fromToken, tokenCount);
    target.checkRange(toRow, toToken, tokenCount);
    for (let head = 0; head < keyValueHeads; head++) {
      const from = ((head * source.rows + fromRow) * source.capacity + fromToken) * headDim;
      const to = ((head * target.rows + toRow) * target.capacity + toToken) * headDim;
      plan.push(from, to, tokenCount * headDim);
    }
  }
  return {
    kind: "kernel",
    call: {
      name: "copyBlocks",
      source: source.buffer,
      target: target.buffer,
      sections: 2 * shape.layers,
      sourceStride: source.sectionSize,
      targetStride: target.sectionSize,
      plan: Int32Array.from(plan),
    },
  };
}

/** The destination of a new token's key and value. */
export interface CacheWrite {
  /** Index of the token among the flat tokens of the step. */
  readonly flatIndex: number;
  readonly row: number;
  readonly position: number;
}

/**
 * New keys and values of a step: [tokens, keyValueHeads * headDim] for each layer's keys, then
 * values.
 */
export interface NewKeyValues {
  readonly view: BufferView;
  /** Number of elements between one layer's keys or values and the next section. */
  readonly stride: number;
  /** Layer of the first section. */
  readonly firstLayer: number;
}

/**
 * Copies new keys and values into a cache.
 *
 * @throws INVALID_STATE for a position outside of its row.
 */
export function writeCache(
  shape: CacheShape,
  newKeyValues: NewKeyValues,
  target: KvCache,
  writes: readonly CacheWrite[],
): WorkerRequest {
  const { keyValueHeads, headDim } = shape;
  const { firstLayer } = newKeyValues;
  const plan = new Int32Array(writes.length * keyValueHeads * 3);
  let i = 0;
  for (const { flatIndex, row, position } of writes) {
    target.checkRange(row, position, 1);
    for (let head = 0; head < keyValueHeads; head++) {
      plan[i++] = (flatIndex * keyValueHeads + head) * headDim;
      plan[i++] = ((head * target.rows + row) * target.capacity + position) * headDim;
      plan[i++] = headDim;
    }
  }
  return {
    kind: "kernel",
    call: {
      name: "copyBlocks",
      source: newKeyValues.view,
      target: target.from(firstLayer),
      sections: 2 * (shape.layers - firstLayer),
      sourceStride: newKeyValues.stride,
      targetStride: target.sectionSize,
      plan,
    },
  };
}

/** Returns the capacity to allocate for a number of tokens. */
export function roundedCapacity(tokens: number): number {
  return Math.ceil(tokens / CAPACITY_INCREMENT) * CAPACITY_INCREMENT;
}

export function cacheShape({ keyValueHeads, headDim, layers }: DecoderConfig): CacheShape {
  return { keyValueHeads, headDim, layers: layers.length };
}
