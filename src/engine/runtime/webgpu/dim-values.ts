import { CHUNK_ROWS, CHUNK_START, type DimTerms, type GpuNumber } from "../../gpu/program.js";

/** Evaluates a program's dimensions for the sizes of a run. */
export class DimValues {
  private values: (number | undefined)[] = [];

  constructor(
    private readonly dims: readonly DimTerms[],
    private readonly sizes: Map<string, number>,
  ) {}

  setChunk(rows: number, start: number): void {
    this.sizes.set(CHUNK_ROWS, rows).set(CHUNK_START, start);
    this.values = [];
  }

  get(number: GpuNumber): number {
    if (typeof number === "number") return number;
    const value = (this.values[number.dim] ??= this.evaluate(this.dims[number.dim]));
    return "ceilDiv" in number ? Math.ceil(value / number.ceilDiv) : value;
  }

  private evaluate(terms: DimTerms): number {
    let total = 0;
    for (const [coefficient, names] of terms) {
      let product = coefficient;
      for (const name of names) product *= this.sizes.get(name)!;
      total += product;
    }
    return total;
  }
}
