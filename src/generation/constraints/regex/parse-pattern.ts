import { buildTextAutomaton } from "./build-text-automaton.js";
import { LlamaGymError } from "../../../core/errors.js";
import { ANY_CHARACTER, type CharacterSet, difference } from "./character-set.js";
import { type RegexExpression, alternatives, characters, repetition, sequence } from "./expression.js";
import { parseRegex } from "./parse-regex.js";
import type { TextAutomaton } from "./text-automaton.js";

/** Noncharacters of Unicode that mark the start and the end of a text. */
const START_MARK: CharacterSet = [[0x10fffe, 0x10fffe]];
const END_MARK: CharacterSet = [[0x10ffff, 0x10ffff]];
const MARKS: CharacterSet = [[0x10fffe, 0x10ffff]];

const UNMARKED_TEXT = repetition(characters(difference(ANY_CHARACTER, MARKS)), 0);

/**
 * Parses a regular expression that matches anywhere in a text, as JSON Schema's "pattern", with
 * anchors anywhere and lookaheads at its start. @throws INVALID_ARGUMENT for other unsupported
 * syntax.
 */
export function parsePattern(source: string): TextAutomaton {
  const lookaheads = readLookaheads(source);
  if (lookaheads.heads.length === 0) return parseSearch(source);
  return lookaheads.heads.reduce(
    (language, { body, isNegative }) => {
      const head = parseSearch(`^(?:${body})`);
      return isNegative ? without(language, head) : language.and(head);
    },
    parseSearch(`^${lookaheads.rest}`),
  );
}

/**
 * Matches the texts of a language that a pattern does not match; marks, which patterns leave out,
 * remain left out.
 */
export function without(language: TextAutomaton, pattern: TextAutomaton): TextAutomaton {
  return language.without(pattern).and(buildTextAutomaton(UNMARKED_TEXT));
}

function parseSearch(source: string): TextAutomaton {
  let expression: RegexExpression;
  try {
    expression = parseRegex(source, { search: true });
  } catch (error) {
    if (!(error instanceof LlamaGymError) || !/outermost alternative|nothing can match after/.test(error.message))
      throw error;
    return parseAnchored(source);
  }
  return buildTextAutomaton(expression);
}

/**
 * Parses an expression with anchors in groups: they match marks, which are then required at the
 * ends and nowhere else.
 */
function parseAnchored(source: string): TextAutomaton {
  const marks = { start: characters(START_MARK), end: characters(END_MARK) };
  const any = repetition(characters(ANY_CHARACTER), 0);
  const unmark = (expression: RegexExpression): RegexExpression => {
    switch (expression.kind) {
      case "characters":
        return expression === marks.start || expression === marks.end
          ? expression
          : characters(difference(expression.set, MARKS));
      case "sequence":
        return sequence(expression.parts.map(unmark));
      case "alternatives":
        return alternatives(expression.options.map(unmark));
      case "repetition":
        return repetition(unmark(expression.body), expression.min, expression.max);
      default:
        return expression;
    }
  };
  const found = buildTextAutomaton(sequence([any, unmark(parseRegex(source, { marks })), any]));
  const text = buildTextAutomaton(sequence([marks.start, UNMARKED_TEXT, marks.end]));
  return found.and(text).trim(START_MARK, END_MARK);
}

/** Reads lookaheads at the start of a text, such as ^(?!abc). */
function readLookaheads(source: string): { heads: { body: string; isNegative: boolean }[]; rest: string } {
  const heads: { body: string; isNegative: boolean }[] = [];
  let position = source.startsWith("^") ? 1 : source.length;
  while (/^\(\?[=!]/.test(source.slice(position))) {
    const end = findGroupEnd(source, position);
    if (end === undefined) break;
    heads.push({ body: source.slice(position + 3, end), isNegative: source[position + 2] === "!" });
    position = end + 1;
  }
  const rest = source.slice(position);
  // An alternative to the lookaheads is not subject to them.
  return hasOuterAlternatives(rest) ? { heads: [], rest: "" } : { heads, rest };
}

/** Returns the index of the parenthesis that closes the one at an index. */
function findGroupEnd(source: string, start: number): number | undefined {
  let depth = 0;
  for (const { index, character } of structure(source, start)) {
    if (character === "(") depth++;
    if (character === ")" && --depth === 0) return index;
  }
  return undefined;
}

function hasOuterAlternatives(source: string): boolean {
  let depth = 0;
  for (const { character } of structure(source, 0)) {
    if (character === "(") depth++;
    if (character === ")") depth--;
    if (character === "|" && depth === 0) return true;
  }
  return false;
}

/** Lists the characters that are neither escaped nor in a class. */
function* structure(source: string, start: number): Generator<{ index: number; character: string }> {
  let isInClass = false;
  for (let index = start; index < source.length; index++) {
    const character = source[index];
    if (character === "\\") index++;
    else if (isInClass) isInClass = character !== "]";
    else if (character === "[") isInClass = true;
    else yield { index, character };
  }
}
