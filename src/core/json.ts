/** A value that survives JSON unchanged. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** A JSON object: a message, `config.json` and its like. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Whether a JSON value is an object (and not null or a list). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a value that is a JSON object; undefined for anything else. */
export const asJsonObject = (value: unknown): JsonObject | undefined => (isJsonObject(value) ? value : undefined);

/** Whether arrays and objects of a JSON value are nested in more than `limit` levels. Not recursive, for untrusted JSON. */
export function isNestedDeeper(json: unknown, limit: number): boolean {
  const isContainer = (value: unknown) => typeof value === "object" && value !== null;
  let level = [json].filter(isContainer);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === limit) return true;
    level = level.flatMap((container) => Object.values(container).filter(isContainer));
  }
  return false;
}
