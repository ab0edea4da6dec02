/** Maximum length of a line in bytes. */
const MAX_LINE_BYTES = 2 ** 28;

/** Splits a byte stream into lines. */
export class LineReader {
  private chunks: Buffer[] = [];
  private length = 0;

  constructor(
    private readonly onLine: (line: string) => void,
    private readonly onTooLong: () => void,
  ) {}

  push(data: Buffer): void {
    let start = 0;
    for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, start)) {
      this.chunks.push(data.subarray(start, end));
      const line = Buffer.concat(this.chunks).toString("utf8");
      this.chunks = [];
      this.length = 0;
      start = end + 1;
      this.onLine(line);
    }
    this.chunks.push(data.subarray(start));
    this.length += data.length - start;
    if (this.length <= MAX_LINE_BYTES) return;
    this.chunks = [];
    this.length = 0;
    this.onTooLong();
  }
}
