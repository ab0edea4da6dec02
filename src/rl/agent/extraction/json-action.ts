import type { JsonValue } from "../../../core/json.js";
import type { Extractor } from "./extractor.js";
import { parseLenientJson } from "./parse-lenient-json.js";

/** Names under which models put their action. */
const DEFAULT_KEYS: readonly string[] = ["action", "answer", "move", "choice", "command", "decision"];

export interface JsonActionOptions {
  /** Names whose value is the action, in any case. */
  readonly keys?: readonly string[];
}

/**
 * The action in JSON: fenced or in the middle of prose, in JSON's letter or nearly (see readLenientJson). Of objects it is the
 * value under one of the keys, also of an object within another; the last such object counts. A reply that is a value as a
 * whole, such as "hit" or [1, 2], is the action itself.
 */
export function jsonAction({ keys = DEFAULT_KEYS }: JsonActionOptions = {}): Extractor<JsonValue> {
  const names = keys.map((key) => key.toLowerCase());
  return (completion) => {
    const values = findJsonValues(completion).flatMap((value) => collectValues(value, names));
    const last = values.at(-1) ?? parseBareValue(completion);
    return last === undefined || last === null ? undefined : { kind: "json", value: last };
  };
}

/** The objects and lists in a text, in their order. */
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

/** The values under the names; those of an object before those within it. */
function collectValues(value: JsonValue, names: readonly string[]): JsonValue[] {
  if (typeof value !== "object" || value === null) return [];
  const members = Object.entries(value);
  const matchingMembers = isList(value) ? [] : members.filter(([name]) => names.includes(name.toLowerCase()));
  if (matchingMembers.length > 0)
    return matchingMembers.map(([, member]) => member).flatMap((member) => unwrap(member, names));
  return members.flatMap(([, member]) => collectValues(member, names));
}

/** { "action": { "move": "left" } } is left. */
function unwrap(value: JsonValue, names: readonly string[]): JsonValue[] {
  const inner = collectValues(value, names);
  return inner.length > 0 ? inner : [value];
}

/** A reply, or its last fenced block, that is a value and nothing else. */
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
