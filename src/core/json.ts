/** A value that survives JSON unchanged. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

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
