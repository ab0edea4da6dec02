import { type CharacterSet, DIGIT_CHARACTERS, WHITESPACE, WORD_CHARACTERS, complement } from "./character-set.js";
import type { RegexSource } from "./regex-source.js";

/** The meaning of an escape: a code point or a set of characters. */
export type Escape = number | CharacterSet;

const CLASS_ESCAPES: Readonly<Record<string, CharacterSet>> = {
  d: DIGIT_CHARACTERS,
  D: complement(DIGIT_CHARACTERS),
  w: WORD_CHARACTERS,
  W: complement(WORD_CHARACTERS),
  s: WHITESPACE,
  S: complement(WHITESPACE),
};

const CONTROL_ESCAPES: Readonly<Record<string, number>> = { t: 0x09, n: 0x0a, v: 0x0b, f: 0x0c, r: 0x0d };

/** Escapes that are not characters. */
const UNSUPPORTED_ESCAPES: Readonly<Record<string, string>> = {
  b: "word boundaries (\\b) are",
  B: "word boundaries (\\B) are",
  p: "Unicode properties (\\p{...}) are",
  P: "Unicode properties (\\P{...}) are",
  k: "backreferences (\\k<name>) are",
  A: "\\A is",
  Z: "\\Z is",
  z: "\\z is",
};

/** Reads an escape after its backslash. @throws INVALID_ARGUMENT for an unsupported one. */
export function readEscape(source: RegexSource, { inClass = false } = {}): Escape {
  const hexEscape = source.consumeMatch(/u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})/);
  if (hexEscape !== undefined)
    return readCodePoint(source, Number.parseInt(hexEscape[1] ?? hexEscape[2] ?? hexEscape[3], 16));
  const control = source.consumeMatch(/c([A-Za-z])/);
  if (control !== undefined) return control[1].charCodeAt(0) % 32;
  if (source.consumeMatch(/0(?!\d)/) !== undefined) return 0;
  if (source.consumeMatch(/(?=\d)/) !== undefined) throw source.error("backreferences (\\1) are not supported");
  if (inClass && source.consume("b")) return 0x08;
  const character = source.next();
  if (character in CLASS_ESCAPES) return CLASS_ESCAPES[character];
  if (character in CONTROL_ESCAPES) return CONTROL_ESCAPES[character];
  if (character in UNSUPPORTED_ESCAPES) throw source.error(`${UNSUPPORTED_ESCAPES[character]} not supported`);
  if (/[A-Za-z]/.test(character)) throw source.error(`\\${character} has no meaning; remove the backslash`);
  return character.codePointAt(0)!;
}

/** Combines two \u escapes of a surrogate pair. */
function readCodePoint(source: RegexSource, code: number): number {
  if (code >= 0xd800 && code < 0xdc00) {
    const low = source.consumeMatch(/\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})/);
    if (low !== undefined) return 0x10000 + ((code - 0xd800) << 10) + (Number.parseInt(low[1], 16) - 0xdc00);
  }
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    throw source.error(`\\u${code.toString(16)} is not a character`);
  return code;
}
