import { LlamaGymError } from "../../../core/errors.js";

/** A regular expression's text while it is read. */
export class RegexSource {
  private position = 0;

  constructor(private readonly text: string) {}

  get isAtEnd(): boolean {
    return this.position >= this.text.length;
  }

  /** The next character (a code point); undefined at the end. */
  peek(): string | undefined {
    const code = this.text.codePointAt(this.position);
    return code === undefined ? undefined : String.fromCodePoint(code);
  }

  next(): string {
    const character = this.peek();
    if (character === undefined) throw this.error("something is missing");
    this.position += character.length;
    return character;
  }

  startsWith(text: string): boolean {
    return this.text.startsWith(text, this.position);
  }

  /** Takes the text if it comes next. */
  consume(text: string): boolean {
    const isNext = this.startsWith(text);
    if (isNext) this.position += text.length;
    return isNext;
  }

  /** Takes what the pattern matches here; undefined where it does not match. */
  consumeMatch(pattern: RegExp): RegExpExecArray | undefined {
    const sticky = new RegExp(pattern.source, "uy");
    sticky.lastIndex = this.position;
    const found = sticky.exec(this.text);
    if (found === null) return undefined;
    this.position = sticky.lastIndex;
    return found;
  }

  /** An error at the place that is read. */
  error(problem: string): LlamaGymError {
    const location = this.isAtEnd ? "its end" : `character ${Array.from(this.text.slice(0, this.position)).length + 1}`;
    return new LlamaGymError(
      "INVALID_ARGUMENT",
      `The regular expression ${JSON.stringify(this.text)} cannot be used: at ${location}, ${problem}.`,
    );
  }
}
