import { StoryError } from "./instruction-budget.js";
import type { TextCodec } from "./text-codec.js";

/** Maximum output per command; the rest is dropped, as in TextWorld's interpreter. */
const MAX_OUTPUT_LENGTH = 8191;
const MAX_TABLES = 16;
const LATIN_1 = 255;
/** Control characters are dropped, those beyond Latin-1 become question marks. */
const UNPRINTABLE = /[^\n -~\u00a0-\u00ff]/g;

/**
 * Output of a story (Standard, section 7): the screen, with its windows in one stream,
 * or a table in memory.
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
      this.screenText += text.replace(UNPRINTABLE, (character) => (character.charCodeAt(0) > LATIN_1 ? "?" : ""));
    }
  }

  /**
   * Executes output_stream: 1 is the screen, 3 a table at `table`; negative closes. Others are
   * ignored.
   */
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

  /** Returns the screen output since the last call. */
  flush(): string {
    const screenText = this.screenText.slice(0, MAX_OUTPUT_LENGTH);
    this.screenText = "";
    return screenText;
  }
}
