import { invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { formatArray, formatShape, formatBounds, type ArrayKind } from "./array-text.js";
import { flattenNested, isNumberArray, nestArray, numbersFromJson, type NestedNumbers } from "./arrays.js";
import { getDtypeEntry, type BoxArray, type BoxDtype } from "./box-dtype.js";
import { Space, type SampleOptions } from "./space.js";
import { countElements } from "../../core/numbers.js";

/** Options of a `Box`. */
export interface BoxOptions<D extends BoxDtype> {
  /** Default: the shape of array bounds, [1] for scalar bounds. */
  readonly shape?: readonly number[];
  /** Element type. Default: float32. */
  readonly dtype?: D;
}

/**
 * Arrays of numbers between two possibly infinite bounds. A bound is one number for all elements,
 * nested arrays, or flat values with a `shape`.
 */
export class Box<D extends BoxDtype = "float32"> extends Space<BoxArray<D>> {
  override readonly shape: readonly number[];
  readonly dtype: D;
  readonly low: BoxArray<D>;
  readonly high: BoxArray<D>;
  /** 1 where the bound is finite. */
  private readonly boundedBelow: Uint8Array;
  private readonly boundedAbove: Uint8Array;

  constructor(low: number | NestedNumbers, high: number | NestedNumbers, options: BoxOptions<D> = {}) {
    const lowArray = typeof low === "number" ? undefined : flattenNested(low, "Box low");
    const highArray = typeof high === "number" ? undefined : flattenNested(high, "Box high");
    const shape = options.shape ?? lowArray?.shape ?? highArray?.shape ?? [1];
    super(shape);
    this.shape = shape;
    this.dtype = options.dtype ?? ("float32" as D);
    const lows = broadcastBound(low, lowArray, shape, "low");
    const highs = broadcastBound(high, highArray, shape, "high");
    this.boundedBelow = Uint8Array.from(lows, (value) => (value > -Infinity ? 1 : 0));
    this.boundedAbove = Uint8Array.from(highs, (value) => (value < Infinity ? 1 : 0));
    this.low = this.castBounds(lows, "low");
    this.high = this.castBounds(highs, "high");
    if (Array.from(this.low).some((value, i) => value > this.high[i])) {
      const text = (values: BoxArray<D>) => formatArray(values, shape, this.kind);
      throw invalidArgument(
        `Box all low values must be less than or equal to high (some values break this), low=${text(this.low)}, high=${text(this.high)}`,
      );
    }
  }

  /**
   * Samples each element: uniform between two bounds, exponential from one, normal without bounds.
   * Integer boxes include both bounds.
   */
  override sample(options?: SampleOptions): BoxArray<D> {
    this.rejectMask(options);
    const { kind, min, max } = getDtypeEntry(this.dtype);
    const { low, high, random, boundedBelow, boundedAbove } = this;
    const draws = new Float64Array(low.length);
    const upperBound = (i: number) => (kind === "float" ? high[i] : high[i] + 1);
    // Four passes, one for each kind of element, in Gymnasium's order of draws.
    const fillWhere = (below: number, above: number, draw: (i: number) => number) => {
      for (let i = 0; i < draws.length; i++)
        if (boundedBelow[i] === below && boundedAbove[i] === above) draws[i] = draw(i);
    };
    fillWhere(0, 0, () => random.normal());
    fillWhere(1, 0, (i) => random.exponential() + low[i]);
    fillWhere(0, 1, (i) => -random.exponential() + upperBound(i));
    fillWhere(1, 1, (i) => random.uniform(low[i], upperBound(i)));
    const toInteger = (value: number) => Math.min(Math.max(Math.floor(value), min), max);
    return this.array(kind === "float" ? draws : draws.map(toInteger));
  }

  override contains(value: unknown): value is BoxArray<D> {
    if (!isNumberArray(value) || value.length !== this.low.length) return false;
    const isInteger = getDtypeEntry(this.dtype).kind !== "float";
    for (let i = 0; i < value.length; i++) {
      const element = value[i];
      if (!(element >= this.low[i] && element <= this.high[i])) return false;
      if (isInteger && !Number.isInteger(element)) return false;
    }
    return true;
  }

  /** Whether all elements have finite bounds. */
  isBounded(side: "both" | "below" | "above" = "both"): boolean {
    const below = side === "above" || this.boundedBelow.every((flag) => flag === 1);
    const above = side === "below" || this.boundedAbove.every((flag) => flag === 1);
    return below && above;
  }

  override equals(other: Space): boolean {
    if (!(other instanceof Box) || !super.equals(other)) return false;
    return this.low.every((low, i) => low === other.low[i] && this.high[i] === other.high[i]);
  }

  override encode(value: BoxArray<D>): JsonValue {
    return nestArray(value, this.shape);
  }

  override decode(json: JsonValue): BoxArray<D> {
    return this.array(this.checkMember(numbersFromJson(json)));
  }

  override get flatSize(): number {
    return this.low.length;
  }

  override flatten(value: BoxArray<D>): number[] {
    return Array.from(value);
  }

  override unflatten(flat: ArrayLike<number>): BoxArray<D> {
    if (flat.length !== this.low.length)
      throw invalidArgument(`${this.toString()} takes ${this.low.length} numbers, got ${flat.length}.`);
    return this.array(flat);
  }

  override toString(): string {
    const text = (values: BoxArray<D>) => formatBounds(values, this.shape, this.kind);
    return `Box(${text(this.low)}, ${text(this.high)}, ${formatShape(this.shape)}, ${this.dtype})`;
  }

  /** Creates an array of the box's element type. */
  array(values: ArrayLike<number>): BoxArray<D> {
    const array = new (getDtypeEntry(this.dtype).array)(values.length);
    array.set(values);
    return array as BoxArray<D>;
  }

  private get kind(): ArrayKind {
    return this.dtype === "float32" || this.dtype === "float64" ? this.dtype : "integer";
  }

  private castBounds(values: number[], name: "low" | "high"): BoxArray<D> {
    const { kind, min, max } = getDtypeEntry(this.dtype);
    const cast = values.map((value) => {
      if (Number.isNaN(value)) throw invalidArgument(`No ${name} value can be NaN.`);
      if (value === Infinity || value === -Infinity) {
        if (kind === "float") return value;
        if (kind === "signed") return value > 0 ? max : min;
        throw invalidArgument(`Box of unsigned integers cannot have an infinite bound, ${name}=${value}`);
      }
      if (value < min || value > max)
        throw invalidArgument(`Box ${name} is out of bounds of ${this.dtype}, ${name}=${value}`);
      return value;
    });
    return this.array(cast);
  }
}

function broadcastBound(
  bound: number | NestedNumbers,
  array: { values: number[]; shape: number[] } | undefined,
  shape: readonly number[],
  name: "low" | "high",
): number[] {
  if (shape.some((extent) => !Number.isInteger(extent) || extent < 0))
    throw invalidArgument(`Box shape must be a list of integers, got ${JSON.stringify(shape)}.`);
  if (array === undefined) return Array.from({ length: countElements(shape) }, () => bound as number);
  const isFlat = array.shape.length === 1 && array.values.length === countElements(shape);
  if (!isFlat && array.shape.join() !== shape.join())
    throw invalidArgument(
      `Box ${name}.shape doesn't match provided shape, ${name}.shape=${formatShape(array.shape)}, shape=${formatShape(shape)}`,
    );
  return array.values;
}
