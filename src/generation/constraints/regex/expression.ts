import { type CharacterSet, characterSet } from "./character-set.js";
import type { TextAutomaton } from "./text-automaton.js";

/** The syntax tree of a language, which is regular unless a rule refers to itself. */
export type RegexExpression =
  | { readonly kind: "characters"; readonly set: CharacterSet }
  | { readonly kind: "sequence"; readonly parts: readonly RegexExpression[] }
  | { readonly kind: "alternatives"; readonly options: readonly RegexExpression[] }
  | { readonly kind: "repetition"; readonly body: RegexExpression; readonly min: number; readonly max: number }
  | ListExpression
  | {
      readonly kind: "automaton";
      readonly automaton: TextAutomaton;
      readonly write: (set: CharacterSet) => RegexExpression;
    }
  | { readonly kind: "rule"; readonly rule: GrammarRule };

/** Items in a fixed order, then any number of others, separated by ", ". */
export interface ListExpression {
  readonly kind: "list";
  readonly items: readonly ListItem[];
  /** Matches each of the others; NO_MATCH for none. */
  readonly rest: RegexExpression;
  /** Number of items and others. */
  readonly min: number;
  readonly max: number;
}

/** An item of a list, which occurs at most once. */
export interface ListItem {
  readonly body: RegexExpression;
  readonly isRequired: boolean;
}

/**
 * A part of the language that expressions share: its states are built once, and it may refer to
 * itself.
 */
export interface GrammarRule {
  /** Returns the expression; called once. */
  readonly expression: () => RegexExpression;
  /** Whether it is a JSON value, which may be nested in itself to a limited depth. */
  readonly isValue: boolean;
}

/** Matches only the empty text; the functions below return no other expression that does. */
export const EMPTY_TEXT: RegexExpression = { kind: "sequence", parts: [] };

/** Matches no text; the functions below return no other expression that does. */
export const NO_MATCH: RegexExpression = { kind: "alternatives", options: [] };

/** Matches one character of a set. */
export function characters(set: CharacterSet): RegexExpression {
  return set.length === 0 ? NO_MATCH : { kind: "characters", set };
}

/** Matches one text. */
export function literal(text: string): RegexExpression {
  const codes = Array.from(text, (character) => character.codePointAt(0)!);
  return sequence(codes.map((code) => characters(characterSet([[code, code]]))));
}

/** Matches the parts one after another. */
export function sequence(parts: readonly RegexExpression[]): RegexExpression {
  if (parts.includes(NO_MATCH)) return NO_MATCH;
  const nonEmpty = parts.filter((part) => part !== EMPTY_TEXT);
  if (nonEmpty.length === 0) return EMPTY_TEXT;
  return nonEmpty.length === 1 ? nonEmpty[0] : { kind: "sequence", parts: nonEmpty };
}

/** Matches any one of the options. */
export function alternatives(options: readonly RegexExpression[]): RegexExpression {
  const possible = options.filter((option) => option !== NO_MATCH);
  if (possible.length === 0) return NO_MATCH;
  if (possible.every((option) => option === EMPTY_TEXT)) return EMPTY_TEXT;
  return possible.length === 1 ? possible[0] : { kind: "alternatives", options: possible };
}

/** Matches the body `min` to `max` times; `max` may be Infinity. */
export function repetition(body: RegexExpression, min: number, max = Infinity): RegexExpression {
  if (max === 0 || body === EMPTY_TEXT) return EMPTY_TEXT;
  if (body === NO_MATCH) return min === 0 ? EMPTY_TEXT : NO_MATCH;
  return min === 1 && max === 1 ? body : { kind: "repetition", body, min, max };
}

/** Matches what a rule matches, whose states are shared. */
export function shared(body: RegexExpression): RegexExpression {
  return body === NO_MATCH || body === EMPTY_TEXT || body.kind === "rule"
    ? body
    : { kind: "rule", rule: { expression: () => body, isValue: false } };
}

export function optional(body: RegexExpression): RegexExpression {
  return repetition(body, 0, 1);
}
