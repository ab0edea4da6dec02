/** What a fixture file holds. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A number as fixtures write it: non-finite ones and integers beyond 2^53 are strings. */
export function decodeNumber(value: Json): number | bigint {
  if (typeof value === "number") return value;
  if (typeof value !== "string") throw new Error(`Expected a number, got ${JSON.stringify(value)}.`);
  return /n/i.test(value) ? Number(value) : BigInt(value);
}

export function product(shape: readonly number[]): number {
  return shape.reduce((total, extent) => total * extent, 1);
}

/** Row-major values as nested arrays of the given shape. */
export function nested(values: ArrayLike<Json>, shape: readonly number[]): Json {
  if (shape.length === 0) return values[0];
  if (shape.length === 1) return Array.from(values);
  const stride = product(shape.slice(1));
  return Array.from({ length: shape[0] }, (_, i) =>
    nested(Array.from(values).slice(i * stride, (i + 1) * stride), shape.slice(1)),
  );
}
