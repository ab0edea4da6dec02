import { ANY, type CharacterSet, characterSet, difference, intersection } from "../regex/characters.js";
import { type Expression, alternatives, characters, literal, repetition, sequence } from "../regex/expression.js";

/** What JSON.stringify writes with a backslash. */
const ESCAPED: CharacterSet = characterSet([
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
]);
const PLAIN = difference(ANY, ESCAPED);

const QUOTE = literal('"');

/** A value as JSON in one line: strings and numbers as JSON.stringify writes them, ", " and ": " between values. */
export function jsonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${jsonText(member)}`);
  return `{${members.join(", ")}}`;
}

/** The strings of `min` to `max` characters (code points). */
export function stringOfLength(min: number, max: number): Expression {
  return sequence([QUOTE, repetition(inJson(ANY), min, max), QUOTE]);
}

/** The strings whose content an expression allows. */
export function stringOf(content: Expression): Expression {
  return sequence([QUOTE, escaped(content), QUOTE]);
}

function escaped(content: Expression): Expression {
  switch (content.kind) {
    case "characters":
      return inJson(content.set);
    case "sequence":
      return sequence(content.parts.map(escaped));
    case "alternatives":
      return alternatives(content.options.map(escaped));
    case "repetition":
      return repetition(escaped(content.body), content.min, content.max);
  }
}

/** One of the characters as it stands in a JSON string. */
function inJson(set: CharacterSet): Expression {
  const codes = intersection(set, ESCAPED).flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i),
  );
  const escapes = codes.map((code) => literal(JSON.stringify(String.fromCharCode(code)).slice(1, -1)));
  return alternatives([characters(intersection(set, PLAIN)), ...escapes]);
}
