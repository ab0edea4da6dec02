import { corrupt } from "../failure.js";
import type { FileSource } from "../source.js";
import { entryOf, float32Target, type RawWeight, type WeightEntry, type WeightFile } from "../weights.js";
import { dequantisationOf } from "./dequantise.js";
import type { GgufView } from "./names.js";
import { elementCount } from "../../tensor/tensor.js";

interface GgufEntry extends WeightEntry {
  readonly view: GgufView;
  readonly source: FileSource;
  /** Rows that lie together in the file, and the numbers and bytes of one. */
  readonly rowCount: number;
  readonly rowElements: number;
  readonly rowBytes: number;
}

function entryFor(view: GgufView, source: FileSource): GgufEntry {
  const { tensor, rows } = view;
  const storedRows = tensor.shape.length === 0 ? 1 : tensor.shape[0];
  const rowElements = storedRows === 0 ? 0 : elementCount(tensor.shape) / storedRows;
  const { blockSize, blockBytes } = tensor.type;
  // The rows of a vector are single numbers, which only types without blocks can cut out.
  const whole = rows === undefined && view.pairedHeads === undefined;
  if (!whole && rowElements % blockSize !== 0) {
    throw corrupt(
      source.path,
      `the rows of its tensor "${tensor.name}" are not made of whole ${tensor.type.name} blocks`,
    );
  }
  const rowBytes = (rowElements / blockSize) * blockBytes;
  const rowCount = rows?.count ?? storedRows;
  if (view.pairedHeads !== undefined && rowCount % (2 * view.pairedHeads) !== 0) {
    throw corrupt(
      source.path,
      `the ${rowCount} rows of its tensor "${tensor.name}" do not fit ${view.pairedHeads} heads`,
    );
  }
  return {
    name: view.name,
    dtype: tensor.type.name,
    shape: view.shape,
    file: source.path,
    offset: tensor.offset + (rows?.start ?? 0) * rowBytes,
    byteLength: rows === undefined ? tensor.byteLength : rowCount * rowBytes,
    mappable: view.pairedHeads === undefined && view.shifted !== true && view.transposed !== true,
    view,
    source,
    rowCount,
    rowElements,
    rowBytes,
  };
}

/** Where the row that the file stores as number `row` belongs: pairs of the two halves of a head, taken apart. */
function unpairedRow(row: number, rowsOfHead: number): number {
  const head = Math.floor(row / rowsOfHead);
  const within = row % rowsOfHead;
  return head * rowsOfHead + (within % 2) * (rowsOfHead / 2) + Math.floor(within / 2);
}

/** The tensors of a GGUF model under their Hugging Face names, shapes and arrangement. */
export class GgufWeights implements WeightFile {
  readonly path: string;
  readonly entries: ReadonlyMap<string, GgufEntry>;
  private readonly sources: readonly FileSource[];

  /** `sourceOf` gives the file of each tensor; all `sources` are closed with the weights. */
  constructor(
    path: string,
    views: readonly GgufView[],
    sourceOf: (tensorName: string) => FileSource,
    sources: readonly FileSource[],
  ) {
    this.path = path;
    this.sources = sources;
    const entries = new Map<string, GgufEntry>();
    for (const view of views) {
      if (entries.has(view.name)) throw corrupt(path, `two of its tensors stand for "${view.name}"`);
      entries.set(view.name, entryFor(view, sourceOf(view.tensor.name)));
    }
    this.entries = entries;
  }

  async readFloat32(name: string, target?: Float32Array): Promise<Float32Array> {
    const entry = entryOf(this.entries, name, this.path);
    const { view } = entry;
    const result = float32Target(entry, target);
    if (view.pairedHeads !== undefined) await readUnpaired(entry, view.pairedHeads, result);
    else if (view.transposed === true) await readTransposed(entry, result);
    else await readPlain(entry, result);
    if (view.shifted === true) for (let i = 0; i < result.length; i++) result[i] -= 1;
    return result;
  }

  async readRaw(name: string): Promise<RawWeight> {
    const entry = entryOf(this.entries, name, this.path);
    const { view, dtype } = entry;
    if (view.shifted === true) {
      const numbers = await this.readFloat32(name);
      return {
        dtype: "F32",
        shape: view.shape,
        bytes: new Uint8Array(numbers.buffer as ArrayBuffer),
        transposed: false,
      };
    }
    const transposed = view.transposed === true;
    const bytes = await entry.source.bytes(entry.offset, entry.byteLength);
    if (view.pairedHeads === undefined) return { dtype, shape: view.tensor.shape, bytes, transposed };
    const rowsOfHead = entry.rowCount / view.pairedHeads;
    const inOrder = new Uint8Array(bytes.length);
    for (let row = 0; row < entry.rowCount; row++) {
      const from = row * entry.rowBytes;
      inOrder.set(bytes.subarray(from, from + entry.rowBytes), unpairedRow(row, rowsOfHead) * entry.rowBytes);
    }
    return { dtype, shape: view.shape, bytes: inOrder, transposed };
  }

  async close(): Promise<void> {
    await Promise.all(this.sources.map((source) => source.close()));
  }
}

async function readPlain(entry: GgufEntry, result: Float32Array): Promise<void> {
  const { dtype, name, source, offset, byteLength } = entry;
  const widen = dequantisationOf(dtype, name, source.path);
  if (widen === undefined) {
    await source.read(new Uint8Array(result.buffer, result.byteOffset, result.byteLength), offset);
    return;
  }
  const { blockSize, blockBytes } = entry.view.tensor.type;
  await source.stream(offset, byteLength, blockBytes, (bytes, before) => {
    const start = before * blockSize;
    widen(bytes, result.subarray(start, start + (bytes.length / blockBytes) * blockSize));
  });
}

/** Hands over the tensor's rows as float32, some at a time, with the number of the first. */
async function streamRows(entry: GgufEntry, consume: (rows: Float32Array, firstRow: number) => void): Promise<void> {
  const { dtype, name, source, offset, rowBytes, rowElements, rowCount } = entry;
  if (rowBytes === 0 || rowCount === 0) return;
  const widen = dequantisationOf(dtype, name, source.path);
  let scratch = new Float32Array(0);
  await source.stream(offset, rowCount * rowBytes, rowBytes, (bytes, firstRow) => {
    const elements = (bytes.length / rowBytes) * rowElements;
    if (scratch.length < elements) scratch = new Float32Array(elements);
    const rows = scratch.subarray(0, elements);
    if (widen === undefined) new Uint8Array(rows.buffer, 0, rows.byteLength).set(bytes);
    else widen(bytes, rows);
    consume(rows, firstRow);
  });
}

async function readUnpaired(entry: GgufEntry, heads: number, result: Float32Array): Promise<void> {
  const { rowElements, rowCount } = entry;
  const rowsOfHead = rowCount / heads;
  await streamRows(entry, (rows, firstRow) => {
    for (let start = 0, row = firstRow; start < rows.length; start += rowElements, row++) {
      result.set(rows.subarray(start, start + rowElements), unpairedRow(row, rowsOfHead) * rowElements);
    }
  });
}

async function readTransposed(entry: GgufEntry, result: Float32Array): Promise<void> {
  const { rowElements, rowCount } = entry;
  await streamRows(entry, (rows, firstRow) => {
    const count = rows.length / rowElements;
    for (let column = 0; column < rowElements; column++) {
      for (let row = 0; row < count; row++)
        result[column * rowCount + firstRow + row] = rows[row * rowElements + column];
    }
  });
}
