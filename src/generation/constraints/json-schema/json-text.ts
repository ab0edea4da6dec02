import { buildTextAutomaton } from "../regex/build-text-automaton.js";
import { ANY_CHARACTER, type CharacterSet, characterSet, difference, intersection } from "../regex/character-set.js";
import {
  type RegexExpression,
  alternatives,
  characters,
  literal,
  repetition,
  sequence,
  shared,
} from "../regex/expression.js";
import type { TextAutomaton } from "../regex/text-automaton.js";

/** Characters that JSON.stringify escapes. */
const ESCAPED_CHARACTERS: CharacterSet = characterSet([
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
]);
const UNESCAPED_CHARACTERS = difference(ANY_CHARACTER, ESCAPED_CHARACTERS);

const QUOTE = literal('"');

/** Maximum length of a string with a greater limit. */
const MAX_LENGTH = 50_000;

/** Writes expressions of JSON strings; equal parts are one object, whose states are shared. */
export class JsonStringWriter {
  private readonly characters = new Map<string, RegexExpression>();
  private readonly strings = new Map<string | TextAutomaton, RegexExpression>();

  /** Matches the strings of `min` to `max` code points. */
  withLength(min: number, max: number): RegexExpression {
    const limit = max === Infinity ? max : Math.min(max, Math.max(min, MAX_LENGTH));
    const key = `${min},${limit}`;
    let expression = this.strings.get(key);
    if (expression === undefined) {
      const content = repetition(this.character(ANY_CHARACTER), min, limit);
      this.strings.set(key, (expression = shared(sequence([QUOTE, content, QUOTE]))));
    }
    return expression;
  }

  /** Matches the strings whose content matches an automaton. */
  withContent(automaton: TextAutomaton): RegexExpression {
    let expression = this.strings.get(automaton);
    if (expression === undefined) {
      const content: RegexExpression = { kind: "automaton", automaton, write: (set) => this.character(set) };
      this.strings.set(automaton, (expression = shared(sequence([QUOTE, content, QUOTE]))));
    }
    return expression;
  }

  /** Matches one of the characters, escaped as in a JSON string. */
  private character(set: CharacterSet): RegexExpression {
    const key = set.join(";");
    let expression = this.characters.get(key);
    if (expression === undefined) this.characters.set(key, (expression = escapeCharacters(set)));
    return expression;
  }
}

/**
 * Writes a character as JSON.stringify does; an automaton of few states, because strings are made
 * of it.
 */
function escapeCharacters(set: CharacterSet): RegexExpression {
  const codes = intersection(set, ESCAPED_CHARACTERS).flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i),
  );
  const unescaped = characters(intersection(set, UNESCAPED_CHARACTERS));
  if (codes.length === 0) return unescaped;
  const escapes = codes.map((code) => literal(JSON.stringify(String.fromCharCode(code)).slice(1, -1)));
  return { kind: "automaton", automaton: buildTextAutomaton(alternatives([unescaped, ...escapes])), write: characters };
}
