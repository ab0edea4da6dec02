import type { Info } from "../info.js";

/**
 * Merges the infos of several environments as Gymnasium does: under each name an entry per environment, and
 * under `_name` flags of those that have one. Missing numbers and arrays are zero, booleans false, others null.
 */
export function batchInfo(infos: readonly Info[]): Info {
  const batched: Record<string, unknown> = {};
  const names = new Set(infos.flatMap((info) => Object.keys(info)));
  for (const name of names) {
    const has = infos.map((info) => Object.hasOwn(info, name));
    const values = infos.map((info) => info[name]);
    const first = values[has.indexOf(true)];
    const isRecord = typeof first === "object" && first !== null && !Array.isArray(first) && !ArrayBuffer.isView(first);
    batched[name] = isRecord
      ? batchInfo(values.map((value) => (value ?? {}) as Info))
      : values.map((value, i) => (has[i] ? value : emptyLike(name, first)));
    batched[`_${name}`] = has;
  }
  return batched;
}

function emptyLike(name: string, value: unknown): unknown {
  // Final observations and infos are not merged.
  if (name === "finalObservation") return null;
  if (typeof value === "number") return 0;
  if (typeof value === "boolean") return false;
  if (ArrayBuffer.isView(value)) return Array.from(value as Int8Array, () => 0);
  return null;
}
