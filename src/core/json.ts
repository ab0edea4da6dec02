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

/**
 * Whether arrays and objects of a JSON value are nested in more than `limit` levels. Not recursive,
 * for untrusted JSON.
 */
export function isNestedDeeper(json: unknown, limit: number): boolean {
  const isContainer = (value: unknown) => typeof value === "object" && value !== null;
  let level = [json].filter(isContainer);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === limit) return true;
    level = level.flatMap((container) => Object.values(container).filter(isContainer));
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACKET = 0x5b;
const BRACE = 0x7b;
const COMMA = 0x2c;

/**
 * Parses JSON with at most `maxNodes` arrays, objects and strings. A small compressed text can
 * contain millions of them, which take ten times the memory of their text; they are counted before
 * anything is created.
 * @throws SyntaxError for text that is not JSON, RangeError for more nodes.
 */
export function parseBoundedJson(text: string, maxNodes: number): unknown {
  checkJsonSize(text, { maxNodes });
  return JSON.parse(text);
}

/**
 * Checks that JSON has at most `maxNodes` arrays, objects and strings, and at most `maxCommas`
 * commas between items and members. Returns how many it has of both. @throws RangeError for more.
 */
export function checkJsonSize(
  text: string,
  { maxNodes, maxCommas = Infinity }: { readonly maxNodes: number; readonly maxCommas?: number },
): number {
  let nodes = 0;
  let commas = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === COMMA && ++commas > maxCommas)
      throw new RangeError(`it has more than ${maxCommas} values after another`);
    if (code !== QUOTE && code !== BRACKET && code !== BRACE) continue;
    if (++nodes > maxNodes) throw new RangeError(`it has more than ${maxNodes} arrays, objects and strings`);
    if (code === QUOTE) i = findStringEnd(text, i);
  }
  return nodes + commas;
}

/** Returns the index of the quote that closes a string, or the text's length. */
export function findStringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

/**
 * Formats a value as JSON on one line, as constrained decoding writes it: with ", " and ": "
 * between values.
 */
export function formatJsonLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(formatJsonLine).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${formatJsonLine(member)}`);
  return `{${members.join(", ")}}`;
}
