import { ANY_CHARACTER, type CharacterSet, characterSet, difference, intersection } from "../regex/character-set.js";
import { type Expression, alternatives, characters, literal, repetition, sequence } from "../regex/expression.js";

/** Characters that JSON.stringify escapes. */
const ESCAPED_CHARACTERS: CharacterSet = characterSet([
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
]);
const UNESCAPED_CHARACTERS = difference(ANY_CHARACTER, ESCAPED_CHARACTERS);

const QUOTE = literal('"');

/** Matches the strings of `min` to `max` code points. */
export function stringWithLength(min: number, max: number): Expression {
  return sequence([QUOTE, repetition(escapeCharacters(ANY_CHARACTER), min, max), QUOTE]);
}

/** Matches the strings whose content matches an expression. */
export function stringWithContent(content: Expression): Expression {
  return sequence([QUOTE, escapeExpression(content), QUOTE]);
}

function escapeExpression(content: Expression): Expression {
  switch (content.kind) {
    case "characters":
      return escapeCharacters(content.set);
    case "sequence":
      return sequence(content.parts.map(escapeExpression));
    case "alternatives":
      return alternatives(content.options.map(escapeExpression));
    case "repetition":
      return repetition(escapeExpression(content.body), content.min, content.max);
    default:
      return content;
  }
}

/** Matches one of the characters, escaped as in a JSON string. */
function escapeCharacters(set: CharacterSet): Expression {
  const codes = intersection(set, ESCAPED_CHARACTERS).flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i),
  );
  const escapes = codes.map((code) => literal(JSON.stringify(String.fromCharCode(code)).slice(1, -1)));
  return alternatives([characters(intersection(set, UNESCAPED_CHARACTERS)), ...escapes]);
}
