/** Returns the largest difference between the numbers of two values; Infinity where they differ in anything else. */
export function maxDifference(a: unknown, b: unknown): number {
  if (typeof a === "number" && typeof b === "number") {
    return Object.is(a, b) || a === b ? 0 : Number.isFinite(a - b) ? Math.abs(a - b) : Infinity;
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b ? 0 : Infinity;
  if (a.constructor !== b.constructor) return Infinity;
  const [left, right] = [Object.entries(a), Object.entries(b)];
  if (left.length !== right.length) return Infinity;
  const other = new Map(right);
  return left.reduce((largest, [name, value]) => {
    return other.has(name) ? Math.max(largest, maxDifference(value, other.get(name))) : Infinity;
  }, 0);
}

/** Returns whether two values share a mutable object or memory. */
export function sharesMemory(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (ArrayBuffer.isView(a) || ArrayBuffer.isView(b)) {
    return ArrayBuffer.isView(a) && ArrayBuffer.isView(b) && a.buffer === b.buffer && overlaps(a, b);
  }
  // Frozen objects are immutable, but their values may not be.
  if (a === b && !Object.isFrozen(a)) return true;
  return Object.entries(a).some(([name, value]) => sharesMemory(value, (b as Record<string, unknown>)[name]));
}

function overlaps(a: ArrayBufferView, b: ArrayBufferView): boolean {
  return a.byteOffset < b.byteOffset + b.byteLength && b.byteOffset < a.byteOffset + a.byteLength;
}
