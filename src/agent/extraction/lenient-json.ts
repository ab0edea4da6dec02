import type { JsonValue } from "../../envs/json.js";

/** A value and where the text goes on behind it. */
export interface LenientValue {
  readonly value: JsonValue;
  readonly end: number;
}

/** Lists and objects within one another; more is no reply. */
const DEEPEST = 32;

const WORDS: Readonly<Record<string, JsonValue>> = {
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
 * Reads a JSON value that starts at a place in a text, as language models write it: also with single or curly quotes, names
 * without quotes, commas too many, comments, line breaks in strings, Python's True, False and None, and with the brackets at
 * the reply's end missing. Undefined where there is no value.
 */
export function readLenientJson(text: string, start: number): LenientValue | undefined {
  const reader = new LenientReader(text, start);
  const value = reader.value(0);
  return value === undefined ? undefined : { value, end: reader.position };
}

class LenientReader {
  constructor(
    private readonly text: string,
    public position: number,
  ) {}

  value(depth: number): JsonValue | undefined {
    this.skip();
    const character = this.text[this.position];
    if (depth > DEEPEST || character === undefined) return undefined;
    if (character === "{") return this.object(depth);
    if (character === "[") return this.list(depth);
    if (character in QUOTES) return this.string();
    return this.number() ?? this.word();
  }

  private object(depth: number): JsonValue | undefined {
    this.position++;
    const members: [string, JsonValue][] = [];
    for (;;) {
      this.separators();
      if (this.closes("}")) return Object.fromEntries(members);
      const name = this.name();
      this.skip();
      if (name === undefined || this.text[this.position++] !== ":") return undefined;
      const value = this.value(depth + 1);
      if (value === undefined) return undefined;
      members.push([name, value]);
    }
  }

  private list(depth: number): JsonValue | undefined {
    this.position++;
    const items: JsonValue[] = [];
    for (;;) {
      this.separators();
      if (this.closes("]")) return items;
      const item = this.value(depth + 1);
      if (item === undefined) return undefined;
      items.push(item);
    }
  }

  /** The closing bracket, or the end of a reply that was cut off. */
  private closes(bracket: string): boolean {
    if (this.position >= this.text.length) return true;
    if (this.text[this.position] !== bracket) return false;
    this.position++;
    return true;
  }

  private name(): string | undefined {
    return (this.text[this.position] ?? "") in QUOTES ? this.string() : this.match(/[\p{L}_$][\p{L}\p{N}_$-]*/uy);
  }

  private string(): string | undefined {
    const close = QUOTES[this.text[this.position]];
    let value = "";
    for (let at = this.position + 1; at < this.text.length; at++) {
      const character = this.text[at];
      if (character === close) {
        this.position = at + 1;
        return value;
      }
      if (character !== "\\") {
        value += character;
        continue;
      }
      const code = /[\da-f]{4}/iy;
      code.lastIndex = at + 2;
      const next = this.text[++at] ?? "";
      const hex = next === "u" ? code.exec(this.text) : null;
      value += hex === null ? (ESCAPES[next] ?? next) : String.fromCharCode(Number.parseInt(hex[0], 16));
      if (hex !== null) at += 4;
    }
    return undefined;
  }

  private number(): number | undefined {
    const digits = this.match(/[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\p{L}\p{N}_])/uy);
    return digits === undefined ? undefined : Number(digits);
  }

  private word(): JsonValue | undefined {
    const word = this.match(/(?:true|false|null|True|False|None)(?![\p{L}\p{N}_])/uy);
    return word === undefined ? undefined : WORDS[word];
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.text);
    if (found === null) return undefined;
    this.position = pattern.lastIndex;
    return found[0];
  }

  /** Space and comments. */
  private skip(): void {
    this.match(/(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/|#[^\n]*)+/y);
  }

  private separators(): void {
    for (this.skip(); this.text[this.position] === ","; this.skip()) this.position++;
  }
}
