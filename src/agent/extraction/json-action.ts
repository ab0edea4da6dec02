import type { JsonValue } from "../../envs/json.js";
import type { Extractor } from "./extractor.js";
import { readLenientJson } from "./lenient-json.js";

/** Names under which models put their action. */
const KEYS: readonly string[] = ["action", "answer", "move", "choice", "command", "decision"];

export interface JsonActionOptions {
  /** Names whose value is the action, in any case. */
  readonly keys?: readonly string[];
}

/**
 * The action in JSON: fenced or in the middle of prose, in JSON's letter or nearly (see readLenientJson). Of objects it is the
 * value under one of the keys, also of an object within another; the last such object counts. A reply that is a value as a
 * whole, such as "hit" or [1, 2], is the action itself.
 */
export function jsonAction({ keys = KEYS }: JsonActionOptions = {}): Extractor<JsonValue> {
  const names = keys.map((key) => key.toLowerCase());
  return (reply) => {
    const values = jsonValues(reply).flatMap((value) => valuesUnder(value, names));
    const last = values.at(-1) ?? bareValue(reply);
    return last === undefined || last === null ? undefined : { kind: "json", value: last };
  };
}

/** The objects and lists in a text, in their order. */
function jsonValues(text: string): JsonValue[] {
  const values: JsonValue[] = [];
  for (let at = 0; at < text.length;) {
    const start = text.slice(at).search(/[[{]/);
    if (start === -1) break;
    const found = readLenientJson(text, at + start);
    if (found !== undefined) values.push(found.value);
    at = found?.end ?? at + start + 1;
  }
  return values;
}

/** The values under the names; those of an object before those within it. */
function valuesUnder(value: JsonValue, names: readonly string[]): JsonValue[] {
  if (typeof value !== "object" || value === null) return [];
  const members = Object.entries(value);
  const own = isList(value) ? [] : members.filter(([name]) => names.includes(name.toLowerCase()));
  if (own.length > 0) return own.map(([, member]) => member).flatMap((member) => unwrapped(member, names));
  return members.flatMap(([, member]) => valuesUnder(member, names));
}

/** { "action": { "move": "left" } } is left. */
function unwrapped(value: JsonValue, names: readonly string[]): JsonValue[] {
  const inner = valuesUnder(value, names);
  return inner.length > 0 ? inner : [value];
}

/** A reply, or its last fenced block, that is a value and nothing else. */
function bareValue(reply: string): JsonValue | undefined {
  const fenced = [...reply.matchAll(/```[a-z]*\n?([\s\S]*?)```/gi)].at(-1)?.[1] ?? reply;
  const text = fenced.trim();
  if (!/^["[\d.+-]/.test(text)) return undefined;
  const found = readLenientJson(text, 0);
  if (found === undefined || found.end !== text.length) return undefined;
  const { value } = found;
  return typeof value === "object" && !isList(value) ? undefined : value;
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
