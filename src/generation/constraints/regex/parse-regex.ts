import { LlamaGymError } from "../../../core/errors.js";
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
import { type Expression, alternatives, characters, repetition, sequence } from "./expression.js";
import { RegexSource } from "./regex-source.js";

export interface RegexOptions {
  /** The dot is any character, line ends too. */
  readonly dotAll?: boolean;
  /** The expression may match a part of the text; otherwise all of it. */
  readonly search?: boolean;
}

/** Groups within groups; deeper ones come from programs that err. */
const MAX_GROUP_DEPTH = 200;

const ANY_TEXT = repetition(characters(ANY_CHARACTER), 0);

/** Flags of a RegExp object: those that are understood, those that change nothing here, and why not the others. */
const UNSUPPORTED_FLAGS: Readonly<Record<string, string>> = {
  i: "case is not ignored here; write [Yy]es for yes and Yes",
  m: "^ and $ stand for the ends of the text, not of lines",
  v: "operations on sets are not supported",
};

/**
 * The texts that a regular expression matches as a whole. Syntax and meaning are JavaScript's with the flag u: characters,
 * classes, escapes, groups, alternatives, * + ? {m} {m,} {m,n}; ^ and $ only where an alternative of the whole expression starts
 * and ends. A character is a code point; the halves of surrogate pairs are none.
 * Throws INVALID_ARGUMENT, and names what is not supported: lookarounds, backreferences, \b, \p and the like.
 */
export function parseRegex(regex: string | RegExp, { dotAll = false, search = false }: RegexOptions = {}): Expression {
  if (typeof regex === "string") return new RegexParser(new RegexSource(regex), dotAll, search).parse();
  const { source, flags } = regex;
  for (const flag of flags) {
    if (!(flag in UNSUPPORTED_FLAGS)) continue;
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `${String(regex)} cannot be used: with flag ${flag}, ${UNSUPPORTED_FLAGS[flag]}.`,
    );
  }
  // The source of an empty RegExp.
  const text = source === "(?:)" ? "" : source;
  return new RegexParser(new RegexSource(text), dotAll || flags.includes("s"), search).parse();
}

class RegexParser {
  private depth = 0;

  constructor(
    private readonly source: RegexSource,
    private readonly dotAll: boolean,
    private readonly search: boolean,
  ) {}

  parse(): Expression {
    const options = this.readAlternatives();
    if (!this.source.isAtEnd) throw this.source.error('a ")" closes no group; write \\) for the character');
    return alternatives(options);
  }

  private readAlternatives(): Expression[] {
    const options = [this.readAlternative()];
    while (this.source.consume("|")) options.push(this.readAlternative());
    return options;
  }

  private readAlternative(): Expression {
    const { source } = this;
    const isOutermost = this.depth === 0;
    const parts: Expression[] = [];
    const hasStartAnchor = isOutermost && source.consume("^");
    let hasEndAnchor = false;
    while (!source.isAtEnd && source.peek() !== "|" && source.peek() !== ")") {
      if (hasEndAnchor)
        throw source.error('something follows "$", which nothing can match; write \\$ for the character');
      hasEndAnchor = isOutermost && source.consume("$");
      if (!hasEndAnchor) parts.push(this.readTerm());
    }
    if (!this.search || !isOutermost) return sequence(parts);
    return sequence([...(hasStartAnchor ? [] : [ANY_TEXT]), ...parts, ...(hasEndAnchor ? [] : [ANY_TEXT])]);
  }

  private readTerm(): Expression {
    const body = this.readAtom();
    const quantifier = this.readQuantifier();
    if (quantifier === undefined) return body;
    // How eagerly a repetition matches makes no difference to what it matches.
    this.source.consume("?");
    if (/^[*+?]$/.test(this.source.peek() ?? "") || this.startsQuantifier())
      throw this.source.error("a repetition is repeated; put the first one into a group");
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
      throw source.error("{,n} means different things in different languages; write {0,n}");
    }
    const min = Number(found[1]);
    const max = found[2] === "" ? min : found[3] === "" ? Infinity : Number(found[3]);
    if (min > max) throw source.error(`the numbers of ${found[0]} are in the wrong order`);
    return { min, max };
  }

  private startsQuantifier(): boolean {
    return this.source.startsWith("{") && this.readQuantifier() !== undefined;
  }

  private readAtom(): Expression {
    const { source } = this;
    if (source.startsWith("(")) return this.readGroup();
    if (source.consume("[")) return characters(this.readClass());
    if (source.consume(".")) return characters(this.dotAll ? ANY_CHARACTER : complement(LINE_TERMINATORS));
    if (source.consume("\\")) return characters(toCharacterSet(readEscape(source)));
    if (source.startsWith("^") || source.startsWith("$"))
      throw source.error(
        `"${source.peek()}" stands inside the expression; it may only start or end it, or an alternative outside all groups. Write \\${source.peek()} for the character`,
      );
    if (/^[*+?]$/.test(source.peek() ?? ""))
      throw source.error(`there is nothing that "${source.peek()}" could repeat`);
    if (this.startsQuantifier()) throw source.error("there is nothing that the {...} could repeat");
    return characters(singleCharacter(source.next()));
  }

  private readGroup(): Expression {
    const { source } = this;
    source.next();
    if (source.startsWith("?")) this.readGroupKind();
    if (++this.depth > MAX_GROUP_DEPTH)
      throw source.error(`more than ${MAX_GROUP_DEPTH} groups stand within one another`);
    const options = this.readAlternatives();
    this.depth--;
    if (!source.consume(")")) throw source.error('a "(" is not closed');
    return alternatives(options);
  }

  /** (?: and (?<name> are groups; the others are named. */
  private readGroupKind(): void {
    const { source } = this;
    for (const [mark, what] of [
      ["?=", "lookaheads (?=...) are"],
      ["?!", "lookaheads (?!...) are"],
      ["?<=", "lookbehinds (?<=...) are"],
      ["?<!", "lookbehinds (?<!...) are"],
      ["?>", "atomic groups (?>...) are"],
      ["?P=", "backreferences (?P=name) are"],
    ]) {
      if (source.startsWith(mark)) throw source.error(`${what} not supported`);
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
      if (typeof first !== "number" || typeof last !== "number")
        throw source.error('a range "-" needs a character on both sides; write \\- for the character');
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

function singleCharacter(character: string): CharacterSet {
  return toCharacterSet(character.codePointAt(0)!);
}
