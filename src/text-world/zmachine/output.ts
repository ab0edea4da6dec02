import { StoryError } from "./story-error.js";
import type { TextCodec } from "./text-codec.js";

/** What one reply holds at most; more is dropped, as by the interpreter that TextWorld uses. */
const MAX_OUTPUT_LENGTH = 8191;
const MAX_TABLES = 16;
const LATIN_1 = 255;
const UNPRINTABLE = /[^\n -~\u00a0-\u00ff]/;
const UNPRINTABLE_GLOBAL = new RegExp(UNPRINTABLE, "g");

/**
 * Where a story's text goes (Standard, section 7): the screen, whose windows are one stream here,
 * or a table in memory while one is open.
 */
export class Output {
  private screenText = "";
  private screenOn = true;
  private readonly tables: { address: number; length: number }[] = [];

  constructor(
    private readonly codec: TextCodec,
    private readonly write: (address: number, value: number) => void,
  ) {}

  reset(): void {
    this.screenText = "";
    this.screenOn = true;
    this.tables.length = 0;
  }

  print(text: string): void {
    const table = this.tables.at(-1);
    if (table !== undefined) {
      for (const character of text) this.write(table.address + 2 + table.length++, this.codec.toZscii(character));
    } else if (this.screenOn && this.screenText.length < MAX_OUTPUT_LENGTH) {
      this.screenText += UNPRINTABLE.test(text) ? text.replace(UNPRINTABLE_GLOBAL, replaceCharacter) : text;
    }
  }

  /** The output_stream instruction: 1 the screen, 3 a table at `table`; negative to close. The others are ignored. */
  select(stream: number, table: number): void {
    if (stream === 1) this.screenOn = true;
    if (stream === -1) this.screenOn = false;
    if (stream === 3) {
      if (this.tables.length === MAX_TABLES) throw new StoryError("it opens too many tables for its output");
      this.tables.push({ address: table, length: 0 });
    }
    if (stream === -3) {
      const closed = this.tables.pop();
      if (closed === undefined) return;
      this.write(closed.address, closed.length >> 8);
      this.write(closed.address + 1, closed.length & 0xff);
    }
  }

  /** What was written to the screen since the last call. */
  flush(): string {
    const screenText = this.screenText.slice(0, MAX_OUTPUT_LENGTH);
    this.screenText = "";
    return screenText;
  }
}

/** The screen knows Latin-1; control characters print nothing, others a question mark. */
function replaceCharacter(character: string): string {
  return character.charCodeAt(0) > LATIN_1 ? "?" : "";
}
