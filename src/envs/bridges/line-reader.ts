/** No observation is as long as this. */
const LONGEST_LINE = 2 ** 28;

/** Puts the lines of a stream of bytes together. */
export class LineReader {
  private parts: Buffer[] = [];
  private length = 0;

  constructor(
    private readonly onLine: (line: string) => void,
    private readonly onTooLong: () => void,
  ) {}

  push(data: Buffer): void {
    let start = 0;
    for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, start)) {
      this.parts.push(data.subarray(start, end));
      const line = Buffer.concat(this.parts).toString("utf8");
      this.parts = [];
      this.length = 0;
      start = end + 1;
      this.onLine(line);
    }
    this.parts.push(data.subarray(start));
    this.length += data.length - start;
    if (this.length <= LONGEST_LINE) return;
    this.parts = [];
    this.length = 0;
    this.onTooLong();
  }
}
