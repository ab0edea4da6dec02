/** Fixtures are padded rows; losses take the tokens that count, without padding. */
export type PaddedRows = readonly (readonly number[])[];

/** Where the tokens that count lie: row by row, in order. */
export class MaskSelection {
  /** Place of each token among all, padding included. */
  readonly positions: readonly number[];

  constructor(private readonly mask: PaddedRows) {
    const width = mask[0]?.length ?? 0;
    this.positions = mask.flatMap((row, i) => row.flatMap((maskValue, j) => (maskValue === 0 ? [] : [i * width + j])));
  }

  get count(): number {
    return this.positions.length;
  }

  /** How many tokens of each row count. */
  get lengths(): number[] {
    return this.mask.map((row) => row.filter((maskValue) => maskValue !== 0).length);
  }

  /** The tokens that count, of padded rows. */
  select<T>(rows: readonly (readonly T[])[]): T[] {
    const all = rows.flat();
    return this.positions.map((position) => all[position]);
  }

  /** The tokens that count, row by row. */
  selectRows<T>(rows: readonly (readonly T[])[]): T[][] {
    return rows.map((row, i) => row.filter((_, j) => this.mask[i][j] !== 0));
  }

  /** One value for each token that counts, row by row. */
  splitByRow(values: ArrayLike<number>): number[][] {
    const all = Array.from(values);
    let start = 0;
    return this.lengths.map((length) => all.slice(start, (start += length)));
  }

  /** Values of the tokens that count, [count, width], among zeros for the others. */
  scatter(values: ArrayLike<number>, width = 1): number[] {
    const all = Array.from({ length: this.mask.flat().length * width }, () => 0);
    this.positions.forEach((position, i) => {
      for (let k = 0; k < width; k++) all[position * width + k] = values[i * width + k];
    });
    return all;
  }
}
