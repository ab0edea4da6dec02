/** x of a x = b, by Gaussian elimination. */
export function solveLinear(a: readonly (readonly number[])[], b: readonly number[]): number[] {
  const rows = a.map((row, i) => [...row, b[i]]);
  rows.forEach((row, i) => {
    for (const other of rows.slice(i + 1)) {
      const factor = other[i] / row[i];
      for (let j = i; j < row.length; j++) other[j] -= factor * row[j];
    }
  });
  const x = b.map(() => 0);
  for (let i = b.length - 1; i >= 0; i--) {
    const known = x.reduce((sum, value, j) => (j > i ? sum + rows[i][j] * value : sum), 0);
    x[i] = (rows[i][b.length] - known) / rows[i][i];
  }
  return x;
}
