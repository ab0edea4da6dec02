import { checkOptions } from "../../../core/settings.js";
import type { JsonValue } from "../../../core/json.js";
import type { Extractor } from "./extractor.js";
import { parseLenientJson } from "./parse-lenient-json.js";

/** Keys under which models usually put their action. */
const DEFAULT_KEYS: readonly string[] = ["action", "answer", "move", "choice", "command", "decision"];

/** Options of `jsonAction`. */
export interface JsonActionOptions {
  /** Keys whose value is the action, ignoring case. */
  readonly keys?: readonly string[];
}

/**
 * Finds an action in JSON, fenced or inside prose, parsed leniently (`parseLenientJson`): the value
 * under one of the keys at any depth; the last one counts. A completion that is a JSON value, such
 * as "hit" or [1, 2], is the action itself.
 */
export function jsonAction(options: JsonActionOptions = {}): Extractor<JsonValue> {
  checkOptions("jsonAction", options, { keys: Array });
  const { keys = DEFAULT_KEYS } = options;
  const names = keys.map((key) => key.toLowerCase());
  return (completion) => {
    const values = findJsonValues(completion).flatMap((value) => collectValues(value, names));
    const last = values.at(-1) ?? parseBareValue(completion);
    return last === undefined || last === null ? undefined : { kind: "json", value: last };
  };
}

/** Objects and arrays in a text, in order. */
function findJsonValues(text: string): JsonValue[] {
  const values: JsonValue[] = [];
  for (let offset = 0; offset < text.length;) {
    const start = text.slice(offset).search(/[[{]/);
    if (start === -1) break;
    const found = parseLenientJson(text, offset + start);
    if (found !== undefined) values.push(found.value);
    offset = found?.end ?? offset + start + 1;
  }
  return values;
}

/** Values under the given names; those of an object precede those nested in it. */
function collectValues(value: JsonValue, names: readonly string[]): JsonValue[] {
  if (typeof value !== "object" || value === null) return [];
  const members = Object.entries(value);
  const matchingMembers = isList(value) ? [] : members.filter(([name]) => names.includes(name.toLowerCase()));
  if (matchingMembers.length > 0)
    return matchingMembers.map(([, member]) => member).flatMap((member) => unwrap(member, names));
  return members.flatMap(([, member]) => collectValues(member, names));
}

/** Resolves nested keys: { "action": { "move": "left" } } yields "left". */
function unwrap(value: JsonValue, names: readonly string[]): JsonValue[] {
  const inner = collectValues(value, names);
  return inner.length > 0 ? inner : [value];
}

/** Value of a completion, or of its last fenced block, that consists of JSON alone. */
function parseBareValue(completion: string): JsonValue | undefined {
  const fenced = [...completion.matchAll(/```[a-z]*\n?([\s\S]*?)```/gi)].at(-1)?.[1] ?? completion;
  const text = fenced.trim();
  if (!/^["[\d.+-]/.test(text)) return undefined;
  const found = parseLenientJson(text, 0);
  if (found === undefined || found.end !== text.length) return undefined;
  const { value } = found;
  return typeof value === "object" && !isList(value) ? undefined : value;
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
