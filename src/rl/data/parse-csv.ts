/** A record of a CSV file. */
export interface CsvRecord {
  /** Number of the line on which the record begins, from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * Reads CSV as RFC 4180 describes it: cells in quotes may have separators, line breaks and doubled
 * quotes. Empty lines are left out.
 * @throws SyntaxError with the line of a quote in the wrong place.
 */
export function parseCsv(text: string, separator: string): CsvRecord[] {
  const records: CsvRecord[] = [];
  const cellEnd = new RegExp(`[${separator}\n\r]`, "g");
  let position = 0;
  let line = 1;
  while (position < text.length) {
    const cells: string[] = [];
    const start = line;
    let next: string | undefined = separator;
    while (next === separator) {
      const isQuoted = text[position] === '"';
      cellEnd.lastIndex = position;
      const end = isQuoted ? findClosingQuote(text, position, line) : (cellEnd.exec(text)?.index ?? text.length);
      const cell = isQuoted ? text.slice(position + 1, end).replaceAll('""', '"') : text.slice(position, end);
      cells.push(cell);
      line += cell.split("\n").length - 1;
      position = isQuoted ? end + 1 : end;
      next = text[position++];
    }
    if (next !== undefined && next !== "\n" && next !== "\r")
      throw new SyntaxError(`line ${line}: text follows the closing quote of a cell. Write quotes in a cell twice`);
    if (next === "\r" && text[position] === "\n") position++;
    if (cells.length > 1 || cells[0] !== "") records.push({ line: start, cells });
    line++;
  }
  return records;
}

function findClosingQuote(text: string, open: number, line: number): number {
  for (let end = text.indexOf('"', open + 1); end >= 0; end = text.indexOf('"', end + 2))
    if (text[end + 1] !== '"') return end;
  throw new SyntaxError(`line ${line}: the quote that opens a cell is not closed`);
}
