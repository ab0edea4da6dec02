import { buildTextAutomaton } from "../regex/build-text-automaton.js";
import { LlamaGymError } from "../../../core/errors.js";
import { ANY_CHARACTER } from "../regex/character-set.js";
import { alternatives, characters, literal, repetition } from "../regex/expression.js";
import { parseRegex } from "../regex/parse-regex.js";
import { parsePattern, without } from "../regex/parse-pattern.js";
import { TextAutomaton } from "../regex/text-automaton.js";
import { FORMATS } from "./formats.js";
import { schemaError } from "./keywords.js";
import type { ValueShape, StringPattern } from "./value-shape.js";

/** The strings that schemas allow, as automata. */
export class StringLanguages {
  private readonly patterns = new Map<string, TextAutomaton>();
  private readonly languages = new Map<string, TextAutomaton>();
  /** By the listed texts that are left out. */
  private readonly rests = new Map<TextAutomaton, Map<string, TextAutomaton>>();

  /**
   * Returns the strings that contain a match of a pattern. @throws INVALID_ARGUMENT for unsupported
   * syntax.
   */
  pattern(source: string, path: string): TextAutomaton {
    let automaton = this.patterns.get(source);
    if (automaton === undefined) {
      try {
        automaton = parsePattern(source);
      } catch (error) {
        if (error instanceof LlamaGymError) throw schemaError(path, `"pattern": ${error.message.replace(/\.$/, "")}`);
        throw error;
      }
      this.patterns.set(source, automaton);
    }
    return automaton;
  }

  /** Returns the strings of a shape; undefined if only their length is restricted. */
  ofShape({ patterns, formats, excluded, minLength, maxLength }: ValueShape): TextAutomaton | undefined {
    const excludedTexts = excluded.filter((value) => typeof value === "string");
    if (patterns.length === 0 && formats.length === 0 && excludedTexts.length === 0) return undefined;
    const sources = patterns.map(({ source, isNegated }) => [source, isNegated]);
    const key = JSON.stringify([sources, formats, excludedTexts, minLength, maxLength]);
    let language = this.languages.get(key);
    if (language !== undefined) return language;
    // Smaller languages first, for smaller automata.
    for (const format of formats) language = meet(language, formatLanguage(format));
    for (const each of patterns) if (!isImplied(each, formats)) language = this.applyPattern(language, each);
    if (excludedTexts.length > 0) language = (language ?? TextAutomaton.any()).without(ofTexts(excludedTexts));
    language = language!.withLength(minLength, maxLength);
    this.languages.set(key, language);
    return language;
  }

  /** Returns the texts of a language that are not listed. */
  without(language: TextAutomaton, texts: readonly string[]): TextAutomaton {
    if (texts.length === 0) return language;
    const key = JSON.stringify(texts);
    const rests = this.rests.get(language) ?? new Map<string, TextAutomaton>();
    this.rests.set(language, rests);
    let rest = rests.get(key);
    if (rest === undefined) rests.set(key, (rest = language.without(ofTexts(texts))));
    return rest;
  }

  private applyPattern(language: TextAutomaton | undefined, { source, path, isNegated }: StringPattern): TextAutomaton {
    const automaton = this.pattern(source, path);
    return isNegated ? without(language ?? TextAutomaton.any(), automaton) : meet(language, automaton);
  }
}

/** Matches the texts of a list. */
export function ofTexts(texts: readonly string[]): TextAutomaton {
  return buildTextAutomaton(alternatives(texts.map(literal)));
}

/** Matches all texts but the empty one. */
export const NON_EMPTY_TEXTS = buildTextAutomaton(repetition(characters(ANY_CHARACTER), 1));

function meet(a: TextAutomaton | undefined, b: TextAutomaton): TextAutomaton {
  return a === undefined ? b : a.and(b);
}

const formatLanguages = new Map<string, TextAutomaton>();

/** Returns the strings of a format, which is one of FORMATS. */
export function formatLanguage(format: string): TextAutomaton {
  let language = formatLanguages.get(format);
  if (language === undefined) formatLanguages.set(format, (language = parseFormat(FORMATS[format])));
  return language;
}

/** Parses an expression that matches whole texts, or one with anchors and lookaheads. */
function parseFormat(source: string): TextAutomaton {
  return source.startsWith("^") ? parsePattern(source) : buildTextAutomaton(parseRegex(source));
}

/** zod limits a hostname's length by a lookahead, which the format's limit implies. */
function isImplied({ source, isNegated }: StringPattern, formats: readonly string[]): boolean {
  return !isNegated && formats.includes("hostname") && source.startsWith("^(?=.{1,253}");
}
