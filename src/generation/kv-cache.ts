import type { Runtime } from "../runtime/runtime.js";
import type { Request } from "../runtime/protocol.js";
import { subview, type View } from "../runtime/buffer.js";
import type { DecoderConfig } from "../nn/config.js";

/** Capacity grows by this many tokens at a time: unused room costs attention time. */
const GROWTH = 32;

type CacheShape = Pick<DecoderConfig, "keyValueHeads" | "headDim"> & { readonly layers: number };

/**
 * Keys and values of all layers in one buffer: for each layer keys, then values, each
 * [1, keyValueHeads, rows, capacity, headDim]. A shared prefix is a cache of one row.
 */
export class KvCache {
  readonly buffer: View;

  constructor(
    private readonly runtime: Runtime,
    private readonly shape: CacheShape,
    readonly rows: number,
    readonly capacity: number,
  ) {
    const { layers, keyValueHeads, headDim } = shape;
    this.buffer = runtime.allocate("float32", [layers * 2 * keyValueHeads * rows * capacity * headDim]);
  }

  /** Keys, or values, of a layer. */
  view(layer: number, kind: "key" | "value"): View {
    const { keyValueHeads, headDim } = this.shape;
    const { rows, capacity } = this;
    const section = 2 * layer + (kind === "key" ? 0 : 1);
    return subview(this.buffer, section * this.sectionSize, [1, keyValueHeads, rows, capacity, headDim]);
  }

  /** Elements of one layer's keys, or values. */
  get sectionSize(): number {
    const { keyValueHeads, headDim } = this.shape;
    return keyValueHeads * this.rows * this.capacity * headDim;
  }

  free(): void {
    this.runtime.free(this.buffer);
  }
}

/** Some tokens of one cache's row, and where they go in another's. */
export interface RowMove {
  readonly fromRow: number;
  readonly toRow: number;
  readonly fromToken?: number;
  readonly toToken?: number;
  readonly tokens: number;
}

/** Copies tokens of rows from one cache into another, in all layers. */
export function moveRows(shape: CacheShape, source: KvCache, target: KvCache, moves: readonly RowMove[]): Request {
  const { keyValueHeads, headDim } = shape;
  const plan: number[] = [];
  for (const { fromRow, toRow, fromToken = 0, toToken = 0, tokens } of moves) {
    if (tokens === 0) continue;
    for (let head = 0; head < keyValueHeads; head++) {
      const from = ((head * source.rows + fromRow) * source.capacity + fromToken) * headDim;
      const to = ((head * target.rows + toRow) * target.capacity + toToken) * headDim;
      plan.push(from, to, tokens * headDim);
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

/** Where a new token's key and value go. */
export interface NewToken {
  /** Its number among the run's flat tokens. */
  readonly flat: number;
  readonly row: number;
  readonly at: number;
}

/** New keys and values as a run leaves them: [tokens, keyValueHeads * headDim] for each layer's keys, then values. */
export interface FreshTokens {
  readonly view: View;
  /** Elements from one layer's keys (or values) to the next section. */
  readonly stride: number;
}

/** Copies new keys and values into a cache. */
export function storeTokens(
  shape: CacheShape,
  fresh: FreshTokens,
  target: KvCache,
  tokens: readonly NewToken[],
): Request {
  const { keyValueHeads, headDim } = shape;
  const plan = new Int32Array(tokens.length * keyValueHeads * 3);
  let i = 0;
  for (const { flat, row, at } of tokens) {
    for (let head = 0; head < keyValueHeads; head++) {
      plan[i++] = (flat * keyValueHeads + head) * headDim;
      plan[i++] = ((head * target.rows + row) * target.capacity + at) * headDim;
      plan[i++] = headDim;
    }
  }
  return {
    kind: "kernel",
    call: {
      name: "copyBlocks",
      source: fresh.view,
      target: target.buffer,
      sections: 2 * shape.layers,
      sourceStride: fresh.stride,
      targetStride: target.sectionSize,
      plan,
    },
  };
}

/** The capacity to allocate for a number of tokens. */
export function roomFor(tokens: number): number {
  return Math.ceil(tokens / GROWTH) * GROWTH;
}

export function cacheShape({ keyValueHeads, headDim, layers }: DecoderConfig): CacheShape {
  return { keyValueHeads, headDim, layers: layers.length };
}
