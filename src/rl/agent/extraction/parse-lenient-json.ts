import type { JsonValue } from "../../../core/json.js";

/** A value and the offset after it. */
export interface LenientValue {
  readonly value: JsonValue;
  readonly end: number;
}

/** Maximum nesting of lists and objects; actions are nested less deeply. */
const MAX_DEPTH = 32;

const LITERALS: Readonly<Record<string, JsonValue>> = {
  true: true,
  false: false,
  null: null,
  True: true,
  False: false,
  None: null,
};

const QUOTES: Readonly<Record<string, string>> = { '"': '"', "'": "'", "`": "`", "“": "”", "‘": "’" };

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

/**
 * Reads a JSON value that starts at a place in a text, as language models write it: also with
 * single or curly quotes, names without quotes, commas too many, comments, line breaks in strings,
 * Python's True, False and None, and with the brackets at the end of the completion missing.
 * Returns undefined where there is no value.
 */
export function parseLenientJson(text: string, start: number): LenientValue | undefined {
  const parser = new LenientJsonParser(text, start);
  const value = parser.parseValue(0);
  return value === undefined ? undefined : { value, end: parser.position };
}

class LenientJsonParser {
  constructor(
    private readonly text: string,
    public position: number,
  ) {}

  parseValue(depth: number): JsonValue | undefined {
    this.skipWhitespace();
    const character = this.text[this.position];
    if (depth > MAX_DEPTH || character === undefined) return undefined;
    if (character === "{") return this.parseObject(depth);
    if (character === "[") return this.parseArray(depth);
    if (character in QUOTES) return this.parseString();
    return this.parseNumber() ?? this.parseLiteral();
  }

  private parseObject(depth: number): JsonValue | undefined {
    this.position++;
    const members: [string, JsonValue][] = [];
    for (;;) {
      this.skipSeparators();
      if (this.consumeClosing("}")) return Object.fromEntries(members);
      const key = this.parseKey();
      this.skipWhitespace();
      if (key === undefined || this.text[this.position++] !== ":") return undefined;
      const value = this.parseValue(depth + 1);
      if (value === undefined) return undefined;
      members.push([key, value]);
    }
  }

  private parseArray(depth: number): JsonValue | undefined {
    this.position++;
    const items: JsonValue[] = [];
    for (;;) {
      this.skipSeparators();
      if (this.consumeClosing("]")) return items;
      const item = this.parseValue(depth + 1);
      if (item === undefined) return undefined;
      items.push(item);
    }
  }

  /** The closing bracket, or the end of a truncated completion. */
  private consumeClosing(bracket: string): boolean {
    if (this.position >= this.text.length) return true;
    if (this.text[this.position] !== bracket) return false;
    this.position++;
    return true;
  }

  private parseKey(): string | undefined {
    return (this.text[this.position] ?? "") in QUOTES ? this.parseString() : this.match(/[\p{L}_$][\p{L}\p{N}_$-]*/uy);
  }

  private parseString(): string | undefined {
    const close = QUOTES[this.text[this.position]];
    let value = "";
    for (let index = this.position + 1; index < this.text.length; index++) {
      const character = this.text[index];
      if (character === close) {
        this.position = index + 1;
        return value;
      }
      if (character !== "\\") {
        value += character;
        continue;
      }
      const code = /[\da-f]{4}/iy;
      code.lastIndex = index + 2;
      const next = this.text[++index] ?? "";
      const hex = next === "u" ? code.exec(this.text) : null;
      value += hex === null ? (ESCAPES[next] ?? next) : String.fromCharCode(Number.parseInt(hex[0], 16));
      if (hex !== null) index += 4;
    }
    return undefined;
  }

  private parseNumber(): number | undefined {
    const digits = this.match(/[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\p{L}\p{N}_])/uy);
    return digits === undefined ? undefined : Number(digits);
  }

  private parseLiteral(): JsonValue | undefined {
    const literal = this.match(/(?:true|false|null|True|False|None)(?![\p{L}\p{N}_])/uy);
    return literal === undefined ? undefined : LITERALS[literal];
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.text);
    if (found === null) return undefined;
    this.position = pattern.lastIndex;
    return found[0];
  }

  /** Space and comments. */
  private skipWhitespace(): void {
    this.match(/(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/|#[^\n]*)+/y);
  }

  private skipSeparators(): void {
    for (this.skipWhitespace(); this.text[this.position] === ","; this.skipWhitespace()) this.position++;
  }
}
