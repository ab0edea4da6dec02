import { escapeCodePoint } from "./python-text.js";
import { UnsupportedTemplate } from "./unsupported-template.js";

const simpleEscapes: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

const hex = "[\\da-fA-F]";
const escapePattern = new RegExp(`\\\\(?:x(${hex}{2})|u(${hex}{4})|U(${hex}{8})|([0-7]{1,3})|([\\s\\S]))`, "gu");

/**
 * Resolves the escapes of a string literal as Jinja does, without its quotes. @throws for invalid
 * escapes.
 */
export function parseStringLiteral(text: string): string {
  return text.replace(
    escapePattern,
    (escape, two?: string, four?: string, eight?: string, octal?: string, other?: string) => {
      const code = two ?? four ?? eight;
      if (code !== undefined) return fromCodePoint(Number.parseInt(code, 16));
      return octal === undefined ? resolveCharacter(escape, other ?? "") : fromCodePoint(Number.parseInt(octal, 8));
    },
  );
}

function resolveCharacter(escape: string, character: string): string {
  if (character === "N") throw new UnsupportedTemplate("the escape \\N{...} of string literals");
  if (/[xuU]/.test(character)) throw new Error(`truncated \\${character} escape in a string literal`);
  // Jinja writes other characters as escapes before it resolves escapes, so that a backslash
  // escapes theirs.
  if (character > "\x7f") return escapeCodePoint(character.codePointAt(0) ?? 0);
  return simpleEscapes[character] ?? escape;
}

function fromCodePoint(code: number): string {
  if (code > 0x10ffff) throw new Error("illegal Unicode character in a string literal");
  return String.fromCodePoint(code);
}
