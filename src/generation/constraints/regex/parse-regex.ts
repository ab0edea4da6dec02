import { excerpt } from "../../../core/format.js";
import { invalidArgument } from "../../../core/errors.js";
import {
  ANY_CHARACTER,
  type CharacterSet,
  LINE_TERMINATORS,
  characterSet,
  complement,
  difference,
  union,
} from "./character-set.js";
import { type Escape, readEscape } from "./read-escape.js";
import { type RegexExpression, alternatives, characters, repetition, sequence } from "./expression.js";
import { RegexSource } from "./regex-source.js";

export interface RegexOptions {
  /** Whether the dot also matches line terminators. */
  readonly dotAll?: boolean;
  /** Whether the expression may match a part of the text instead of all of it. */
  readonly search?: boolean;
  /** What ^ and $ match, wherever they are. */
  readonly marks?: { readonly start: RegexExpression; readonly end: RegexExpression };
}

/**
 * Maximum characters of an expression. An expression of this length compiles, or is refused, within
 * seconds.
 */
const MAX_REGEX_LENGTH = 65_536;

/** Deeper nesting comes from programming errors. */
const MAX_GROUP_DEPTH = 200;

const ANY_TEXT = repetition(characters(ANY_CHARACTER), 0);

/** Flags of a RegExp that are rejected, and why; the others are supported or have no effect. */
const UNSUPPORTED_FLAGS: Readonly<Record<string, string>> = {
  i: "flag i is not supported; write [Yy]es for yes and Yes",
  m: "flag m is not supported; ^ and $ match the ends of the text",
  v: "flag v is not supported",
};

/**
 * Parses a regular expression that matches whole texts. Syntax and semantics are JavaScript's with
 * the flag u: characters, classes, escapes, groups, alternatives, * + ? {m} {m,} {m,n}; ^ and $
 * only at the start and end of an outermost alternative. A character is a code point other than a
 * surrogate.
 * @throws INVALID_ARGUMENT for unsupported syntax, such as lookarounds, backreferences, \b and \p.
 */
export function parseRegex(
  regex: string | RegExp,
  { dotAll = false, search = false, marks }: RegexOptions = {},
): RegexExpression {
  const { source, flags } = typeof regex === "string" ? { source: regex, flags: "" } : regex;
  if (source.length > MAX_REGEX_LENGTH)
    throw invalidArgument(
      `The regular expression ${excerpt(source, 60)} has ${source.length} characters, more than ${MAX_REGEX_LENGTH}.`,
    );
  for (const flag of flags) {
    if (!(flag in UNSUPPORTED_FLAGS)) continue;
    throw invalidArgument(`Invalid regular expression ${excerpt(String(regex))}: ${UNSUPPORTED_FLAGS[flag]}.`);
  }
  return new RegexParser(new RegexSource(source), dotAll || flags.includes("s"), search, marks).parse();
}

class RegexParser {
  private depth = 0;

  constructor(
    private readonly source: RegexSource,
    private readonly dotAll: boolean,
    private readonly search: boolean,
    private readonly marks: RegexOptions["marks"],
  ) {}

  parse(): RegexExpression {
    const options = this.readAlternatives();
    if (!this.source.isAtEnd) throw this.source.error('a ")" has no matching "("; write \\) for the character');
    return alternatives(options);
  }

  private readAlternatives(): RegexExpression[] {
    const options = [this.readAlternative()];
    while (this.source.consume("|")) options.push(this.readAlternative());
    return options;
  }

  private readAlternative(): RegexExpression {
    const { source } = this;
    const isOutermost = this.depth === 0 && this.marks === undefined;
    const parts: RegexExpression[] = [];
    const hasStartAnchor = isOutermost && source.consume("^");
    let hasEndAnchor = false;
    while (!source.isAtEnd && source.peek() !== "|" && source.peek() !== ")") {
      if (hasEndAnchor) throw source.error('nothing can match after "$"; write \\$ for the character');
      hasEndAnchor = isOutermost && source.consume("$");
      if (!hasEndAnchor) parts.push(this.readTerm());
    }
    if (!this.search || !isOutermost) return sequence(parts);
    return sequence([...(hasStartAnchor ? [] : [ANY_TEXT]), ...parts, ...(hasEndAnchor ? [] : [ANY_TEXT])]);
  }

  private readTerm(): RegexExpression {
    const body = this.readAtom();
    const quantifier = this.readQuantifier();
    if (quantifier === undefined) return body;
    // Lazy and greedy repetitions match the same texts.
    this.source.consume("?");
    if (/^[*+?]$/.test(this.source.peek() ?? "") || this.startsQuantifier())
      throw this.source.error("a repetition follows another; put the first one into a group");
    return repetition(body, quantifier.min, quantifier.max);
  }

  private readQuantifier(): { min: number; max: number } | undefined {
    const { source } = this;
    if (source.consume("*")) return { min: 0, max: Infinity };
    if (source.consume("+")) return { min: 1, max: Infinity };
    if (source.consume("?")) return { min: 0, max: 1 };
    const found = source.consumeMatch(/\{(\d+)(,?)(\d*)\}/);
    if (found === undefined) {
      if (source.consumeMatch(/\{,\d+\}/) === undefined) return undefined;
      throw source.error("{,n} is ambiguous; write {0,n}");
    }
    const min = Number(found[1]);
    const max = found[2] === "" ? min : found[3] === "" ? Infinity : Number(found[3]);
    if (min > max) throw source.error(`the numbers of ${found[0]} are in the wrong order`);
    return { min, max };
  }

  private startsQuantifier(): boolean {
    return this.source.startsWith("{") && this.readQuantifier() !== undefined;
  }

  private readAtom(): RegexExpression {
    const { source } = this;
    if (source.startsWith("(")) return this.readGroup();
    if (source.consume("[")) return characters(this.readClass());
    if (source.consume(".")) return characters(this.dotAll ? ANY_CHARACTER : complement(LINE_TERMINATORS));
    if (source.consume("\\")) return characters(toCharacterSet(readEscape(source)));
    if (this.marks !== undefined && source.consume("^")) return this.marks.start;
    if (this.marks !== undefined && source.consume("$")) return this.marks.end;
    if (source.startsWith("^") || source.startsWith("$"))
      throw source.error(
        `"${source.peek()}" is supported only at the start or end of an outermost alternative; write \\${source.peek()} for the character`,
      );
    if (/^[*+?]$/.test(source.peek() ?? "")) throw source.error(`"${source.peek()}" has nothing to repeat`);
    if (this.startsQuantifier()) throw source.error("{...} has nothing to repeat");
    return characters(toCharacterSet(source.next().codePointAt(0)!));
  }

  private readGroup(): RegexExpression {
    const { source } = this;
    source.next();
    if (source.startsWith("?")) this.readGroupKind();
    if (++this.depth > MAX_GROUP_DEPTH)
      throw source.error(`groups are nested more than ${MAX_GROUP_DEPTH} levels deep`);
    const options = this.readAlternatives();
    this.depth--;
    if (!source.consume(")")) throw source.error('a "(" is not closed');
    return alternatives(options);
  }

  /** Reads (?: or (?<name>, and rejects other kinds by name. */
  private readGroupKind(): void {
    const { source } = this;
    for (const [mark, description] of [
      ["?=", "lookaheads (?=...) are"],
      ["?!", "lookaheads (?!...) are"],
      ["?<=", "lookbehinds (?<=...) are"],
      ["?<!", "lookbehinds (?<!...) are"],
      ["?>", "atomic groups (?>...) are"],
      ["?P=", "backreferences (?P=name) are"],
    ]) {
      if (source.startsWith(mark)) throw source.error(`${description} not supported`);
    }
    if (source.consume("?:") || source.consumeMatch(/\?P?<\w+>/) !== undefined) return;
    throw source.error("groups other than (...), (?:...) and (?<name>...) are not supported");
  }

  private readClass(): CharacterSet {
    const { source } = this;
    const isNegated = source.consume("^");
    const sets: CharacterSet[] = [];
    while (!source.consume("]")) {
      if (source.isAtEnd) throw source.error('a "[" is not closed');
      if (source.startsWith("[:")) throw source.error("classes such as [:alpha:] are not supported");
      const first = this.readClassAtom();
      const isRange = source.startsWith("-") && !source.startsWith("-]");
      if (!isRange) {
        sets.push(toCharacterSet(first));
        continue;
      }
      source.next();
      const last = this.readClassAtom();
      if (typeof first !== "number" || typeof last !== "number") {
        if (!this.search && this.marks === undefined)
          throw source.error('a range "-" needs a character on both sides; write \\- for the character');
        // As without the flag u, which many schemas rely on.
        sets.push(toCharacterSet(first), [[0x2d, 0x2d]], toCharacterSet(last));
        continue;
      }
      if (first > last) throw source.error("the ends of a range are in the wrong order");
      sets.push([[first, last]]);
    }
    const set = union(...sets);
    return isNegated ? difference(ANY_CHARACTER, set) : set;
  }

  private readClassAtom(): Escape {
    const { source } = this;
    if (source.consume("\\")) return readEscape(source, { inClass: true });
    return source.next().codePointAt(0)!;
  }
}

function toCharacterSet(escape: Escape): CharacterSet {
  return typeof escape === "number" ? characterSet([[escape, escape]]) : escape;
}
