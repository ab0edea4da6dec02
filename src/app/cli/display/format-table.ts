/** Formats rows as columns as wide as their widest cell. Columns in `rightAligned` hold numbers. */
export function formatTable(rows: readonly (readonly string[])[], rightAligned: readonly number[] = []): string {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          rightAligned.includes(column) ? cell.padStart(widths[column]) : cell.padEnd(widths[column]),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
