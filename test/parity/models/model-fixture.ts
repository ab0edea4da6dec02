import { join } from "node:path";
import { SafetensorsFile } from "../../../src/models/files/index.js";

/** What expected.safetensors holds for a model, with the padding taken away. */
export class ModelFixture {
  private constructor(
    private readonly file: SafetensorsFile,
    private readonly starts: readonly number[],
    private readonly width: number,
    /** Token ids of each row. */
    readonly rows: readonly (readonly number[])[],
    /** For each token of each row, whether it is the response's. */
    readonly response: readonly (readonly boolean[])[],
    /** The response tokens of the whole batch, the divisor of the mean negative log-likelihood. */
    readonly responseCount: number,
  ) {}

  static async open(folder: string): Promise<ModelFixture> {
    const file = await SafetensorsFile.open(join(folder, "expected.safetensors"));
    const [ids, mask, response] = await Promise.all(
      ["input_ids", "attention_mask", "response_mask"].map((name) => readIntegers(file, name)),
    );
    const [count, width] = file.entries.get("input_ids")!.shape;
    const starts = Array.from({ length: count }, (_, row) => mask.indexOf(1, row * width) - row * width);
    const removePadding = (values: Int32Array) =>
      starts.map((start, row) => [...values.subarray(row * width + start, (row + 1) * width)]);
    const isResponse = removePadding(response).map((row) => row.map((value) => value === 1));
    const responseCount = response.reduce((sum, value) => sum + value, 0);
    return new ModelFixture(file, starts, width, removePadding(ids), isResponse, responseCount);
  }

  has(name: string): boolean {
    return this.file.entries.has(name);
  }

  /** The values at the real tokens of all rows, one row after another, [tokens, ...] flat. */
  async readPerToken(name: string): Promise<Float32Array> {
    const all = await this.file.readFloat32(name);
    const valuesPerToken = all.length / (this.rows.length * this.width);
    const parts = this.starts.map((start, row) =>
      all.subarray((row * this.width + start) * valuesPerToken, (row + 1) * this.width * valuesPerToken),
    );
    const result = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
    let offset = 0;
    for (const part of parts) {
      result.set(part, offset);
      offset += part.length;
    }
    return result;
  }

  async readScalar(name: string): Promise<number> {
    return (await this.file.readFloat32(name))[0];
  }

  /** The rows of an integer matrix. */
  async readIntegerRows(name: string): Promise<number[][]> {
    const [count, width] = this.file.entries.get(name)!.shape;
    const values = await readIntegers(this.file, name);
    return Array.from({ length: count }, (_, row) => [...values.subarray(row * width, (row + 1) * width)]);
  }

  /** All tensors whose names begin with `prefix`, under the rest of their names. */
  async group(prefix: string): Promise<Map<string, Float32Array>> {
    const tensors = new Map<string, Float32Array>();
    for (const name of this.file.entries.keys()) {
      if (name.startsWith(prefix)) tensors.set(name.slice(prefix.length), await this.file.readFloat32(name));
    }
    return tensors;
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}

async function readIntegers(file: SafetensorsFile, name: string): Promise<Int32Array> {
  const bytes = await file.readBytes(name);
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
}
