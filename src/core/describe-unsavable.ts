import { excerpt } from "./format.js";

/** Levels of arrays and objects that readers of JSON files accept. */
export const MAX_JSON_DEPTH = 100;

/**
 * Describes what JSON files cannot hold of a value, such as "learner.klCoef is Infinity, and JSON
 * has only finite numbers", for which JSON.stringify would write null, or a map, of which it would
 * write {}; undefined if there is nothing.
 */
export function describeUnsavable(value: unknown, maxDepth = MAX_JSON_DEPTH, path = ""): string | undefined {
  if (typeof value === "number") {
    if (Number.isFinite(value)) return undefined;
    return `${path || "it"} is ${value}, and JSON has only finite numbers`;
  }
  const lost = describeLost(value);
  if (lost !== undefined) return `${path || "it"} is ${lost}, which JSON does not have`;
  if (typeof value !== "object" || value === null || "toJSON" in value) return undefined;
  if (maxDepth === 0)
    return `${excerpt(path)} is nested too deep, more than ${MAX_JSON_DEPTH} levels with what contains it`;
  const isList = Array.isArray(value);
  const keys = isList ? value.keys() : Object.keys(value);
  for (const key of keys) {
    const member = (value as Readonly<Record<string | number, unknown>>)[key];
    // Most lists hold thousands of token ids.
    if (typeof member === "string" || (typeof member === "number" && Number.isFinite(member))) continue;
    const memberPath = isList ? `${path}[${key}]` : path === "" ? String(key) : `${path}.${key}`;
    const problem =
      isList && member === undefined
        ? `${memberPath} is undefined, which JSON writes as null`
        : describeUnsavable(member, maxDepth - 1, memberPath);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Names a value that JSON.stringify leaves out, or of which it writes something else. */
function describeLost(value: unknown): string | undefined {
  if (typeof value === "function" || typeof value === "symbol" || typeof value === "bigint") return `a ${typeof value}`;
  const isLost =
    value instanceof Map || value instanceof Set || value instanceof ArrayBuffer || ArrayBuffer.isView(value);
  return isLost ? `a ${value.constructor.name}` : undefined;
}
