import { excerpt } from "../../../core/format.js";
import { invalidArgument, type LlamaGymError } from "../../../core/errors.js";

/** The text of a regular expression with a read position. */
export class RegexSource {
  private position = 0;

  constructor(private readonly text: string) {}

  get isAtEnd(): boolean {
    return this.position >= this.text.length;
  }

  /** Returns the next code point without consuming it; undefined at the end. */
  peek(): string | undefined {
    const code = this.text.codePointAt(this.position);
    return code === undefined ? undefined : String.fromCodePoint(code);
  }

  next(): string {
    const character = this.peek();
    if (character === undefined) throw this.error("a character is missing");
    this.position += character.length;
    return character;
  }

  startsWith(text: string): boolean {
    return this.text.startsWith(text, this.position);
  }

  /** Consumes the text if it comes next. */
  consume(text: string): boolean {
    const isNext = this.startsWith(text);
    if (isNext) this.position += text.length;
    return isNext;
  }

  /** Consumes and returns a match of the pattern at the position; undefined if there is none. */
  consumeMatch(pattern: RegExp): RegExpExecArray | undefined {
    const sticky = new RegExp(pattern.source, "uy");
    sticky.lastIndex = this.position;
    const found = sticky.exec(this.text);
    if (found === null) return undefined;
    this.position = sticky.lastIndex;
    return found;
  }

  /** Creates an error at the current position. */
  error(problem: string): LlamaGymError {
    const location = this.isAtEnd ? "its end" : `character ${Array.from(this.text.slice(0, this.position)).length + 1}`;
    return invalidArgument(
      `Invalid regular expression ${excerpt(JSON.stringify(this.text))}: at ${location}, ${problem}.`,
    );
  }
}
