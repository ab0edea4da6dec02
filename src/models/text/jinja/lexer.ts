import { parseStringLiteral } from "./string-literal.js";
import { WHITESPACE, strip } from "./text-functions.js";
import { type Int, toInt } from "./numbers.js";

/** A part of a template; operators have their text as type. */
export interface Token {
  readonly type: string;
  readonly text: string;
  /** Value of a string, integer or float. */
  readonly value?: string | Int;
  readonly line: number;
}

const space = `[${WHITESPACE}]`;
const rules: readonly (readonly [type: string, pattern: RegExp])[] = [
  ["space", new RegExp(`${space}+`, "y")],
  ["float", /(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?[eE][+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/y],
  ["integer", /0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|[1-9](?:_?\d)*|0(?:_?0)*/y],
  ["name", /[\p{XID_Continue}]+/uy],
  ["string", /'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y],
  ["operator", /\*\*|\/\/|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y],
];
const rawStart = new RegExp(`\\{%(?<mark>[-+]?)${space}*raw${space}*(?:-%\\}${space}*|%\\})`, "y");
const rawEnd = new RegExp(`\\{%(?<mark>[-+]?)${space}*endraw${space}*(?:\\+%\\}|-%\\}${space}*|%\\}\\n?)`, "g");
const commentEnd = new RegExp(`\\+#\\}|-#\\}${space}*|#\\}\\n?`, "g");
const blockEnd = new RegExp(`\\+%\\}|-%\\}${space}*|%\\}\\n?`, "y");
const variableEnd = new RegExp(`-\\}\\}${space}*|\\}\\}`, "y");
const identifier = /^[\p{XID_Start}_]\p{XID_Continue}*$/u;
const brackets: Readonly<Record<string, string>> = { "{": "}", "(": ")", "[": "]" };

/** Splits a template into tokens, with trim_blocks and lstrip_blocks. @throws for invalid Jinja. */
export function tokenize(template: string): Token[] {
  const lexer = new Lexer(template.replace(/\r\n|\r/g, "\n").replace(/\n$/, ""));
  lexer.run();
  return lexer.tokens;
}

class Lexer {
  readonly tokens: Token[] = [];
  private position = 0;
  private line = 1;
  /** Whether the next text begins a line: that lstrip_blocks may remove all of it. */
  private startsLine = true;

  constructor(private readonly source: string) {}

  run(): void {
    const opener = /\{[{%#]/g;
    for (let match = opener.exec(this.source); match; match = opener.exec(this.source)) {
      const start = match.index;
      const kind = this.source[start + 1];
      const raw = kind === "%" ? matchAt(rawStart, this.source, start) : null;
      const mark = raw?.groups?.mark ?? /[-+]?/y.exec(this.source.slice(start + 2, start + 3))?.[0] ?? "";
      this.pushText(this.source.slice(this.position, start), mark, kind);
      this.advance(start + (raw ? raw[0].length : 2 + mark.length));
      if (raw) this.readRaw();
      else if (kind === "#") this.readComment();
      else this.readTag(kind);
      opener.lastIndex = this.position;
    }
    this.pushText(this.source.slice(this.position), "+", "{");
    this.push("eof", "");
  }

  private push(type: string, text: string, value?: string | Int): void {
    this.tokens.push({ type, text, value, line: this.line });
  }

  /**
   * Adds the text before a tag, without the whitespace that the tag's mark or lstrip_blocks
   * removes.
   */
  private pushText(text: string, mark: string, kind: string): void {
    let kept = text;
    if (mark === "-") {
      kept = strip(text, undefined, "right");
    } else if (mark === "" && kind !== "{") {
      const lineStart = text.lastIndexOf("\n") + 1;
      if ((lineStart > 0 || this.startsLine) && strip(text.slice(lineStart), undefined) === "")
        kept = text.slice(0, lineStart);
    }
    if (kept !== "") this.push("data", kept);
  }

  private advance(end: number): void {
    for (let i = this.source.indexOf("\n", this.position); i >= 0 && i < end; i = this.source.indexOf("\n", i + 1))
      this.line++;
    this.startsLine = end > this.position ? this.source[end - 1] === "\n" : this.startsLine;
    this.position = end;
  }

  private readRaw(): void {
    rawEnd.lastIndex = this.position;
    const end = rawEnd.exec(this.source);
    if (!end) return this.endUnclosed("Missing end of raw directive");
    this.pushText(this.source.slice(this.position, end.index), end.groups?.mark ?? "", "%");
    this.advance(end.index + end[0].length);
  }

  /** Jinja accepts an unclosed comment or raw block that begins at the very end. */
  private endUnclosed(message: string): void {
    if (this.position < this.source.length) throw new Error(message);
  }

  private readComment(): void {
    commentEnd.lastIndex = this.position;
    const end = commentEnd.exec(this.source);
    if (!end) return this.endUnclosed("Missing end of comment tag");
    this.advance(end.index + end[0].length);
  }

  /** Reads the tokens of a block or variable, with its ends. */
  private readTag(kind: string): void {
    const [name, end] = kind === "%" ? (["block", blockEnd] as const) : (["variable", variableEnd] as const);
    this.push(`${name}_begin`, "");
    const open: string[] = [];
    while (this.position < this.source.length) {
      const closing = open.length === 0 ? matchAt(end, this.source, this.position) : null;
      if (closing) {
        this.push(`${name}_end`, "");
        this.advance(this.position + closing[0].length);
        return;
      }
      this.readToken(open);
    }
  }

  private readToken(open: string[]): void {
    for (const [type, pattern] of rules) {
      const text = matchAt(pattern, this.source, this.position)?.[0];
      if (text === undefined) continue;
      if (type === "operator") balance(text, open);
      this.pushToken(type, text);
      this.advance(this.position + text.length);
      return;
    }
    throw new Error(`unexpected char '${this.source[this.position]}' at ${this.position}`);
  }

  private pushToken(type: string, text: string): void {
    if (type === "space") return;
    if (type === "operator") this.push(text, text);
    else if (type === "integer") this.push(type, text, toInt(BigInt(text.replaceAll("_", ""))));
    else if (type === "string") this.push(type, text, parseStringLiteral(text.slice(1, -1)));
    else if (type === "float") this.push(type, text);
    else if (identifier.test(text)) this.push(type, text);
    else throw new Error("Invalid character in identifier");
  }
}

function matchAt(pattern: RegExp, source: string, position: number): RegExpExecArray | null {
  pattern.lastIndex = position;
  return pattern.exec(source);
}

function balance(operator: string, open: string[]): void {
  if (operator in brackets) open.push(brackets[operator]);
  if (!/^[})\]]$/.test(operator)) return;
  const expected = open.pop();
  if (expected !== operator)
    throw new Error(`unexpected '${operator}'${expected === undefined ? "" : `, expected '${expected}'`}`);
}
