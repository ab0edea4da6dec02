import { corruptFileError } from "../../../core/files/file-errors.js";
import type { FileSource } from "../file-source.js";
import { getEntry, prepareFloat32Target, splitRows, type WeightEntry, type WeightFile } from "../weight-file.js";
import { getDequantizeFunction } from "./dequantize.js";
import type { GgufTensorView } from "./map-tensor-names.js";
import { countElements } from "../../../core/numbers.js";

interface GgufEntry extends WeightEntry {
  readonly view: GgufTensorView;
  readonly source: FileSource;
  /** Number of contiguous rows, and elements and bytes per row. */
  readonly rowCount: number;
  readonly rowElements: number;
  readonly rowBytes: number;
}

function createEntry(view: GgufTensorView, source: FileSource): GgufEntry {
  const { tensor, rows } = view;
  const storedRows = tensor.shape.length === 0 ? 1 : tensor.shape[0];
  const rowElements = storedRows === 0 ? 0 : countElements(tensor.shape) / storedRows;
  const { blockSize, blockBytes } = tensor.type;
  // Rows of a vector are single values, which only unblocked types can slice.
  const isWhole = rows === undefined && view.interleavedHeads === undefined;
  if (!isWhole && rowElements % blockSize !== 0)
    throw corruptFileError(
      source.path,
      `the rows of its tensor "${tensor.name}" are not made of whole ${tensor.type.name} blocks`,
    );
  const rowBytes = (rowElements / blockSize) * blockBytes;
  const rowCount = rows?.count ?? storedRows;
  if (view.interleavedHeads !== undefined && rowCount % (2 * view.interleavedHeads) !== 0)
    throw corruptFileError(
      source.path,
      `the ${rowCount} rows of its tensor "${tensor.name}" do not fit ${view.interleavedHeads} heads`,
    );
  return {
    name: view.name,
    dtype: tensor.type.name,
    shape: view.shape,
    file: source.path,
    offset: tensor.offset + (rows?.start ?? 0) * rowBytes,
    byteLength: rows === undefined ? tensor.byteLength : rowCount * rowBytes,
    mappable: view.interleavedHeads === undefined && view.hasNormOffset !== true && view.transposed !== true,
    view,
    source,
    rowCount,
    rowElements,
    rowBytes,
  };
}

/**
 * Returns the destination of an interleaved row: even rows are a head's first half, odd rows its
 * second.
 */
export function deinterleaveRow(row: number, rowsPerHead: number): number {
  const head = Math.floor(row / rowsPerHead);
  const rowInHead = row % rowsPerHead;
  return head * rowsPerHead + (rowInHead % 2) * (rowsPerHead / 2) + Math.floor(rowInHead / 2);
}

/** Tensors of a GGUF model under their Hugging Face names, shapes and layouts. */
export class GgufWeights implements WeightFile {
  readonly entries: ReadonlyMap<string, GgufEntry>;

  /** @param getSource returns the file of a tensor @param sources files closed with the weights */
  constructor(
    readonly path: string,
    views: readonly GgufTensorView[],
    getSource: (tensorName: string) => FileSource,
    private readonly sources: readonly FileSource[],
  ) {
    const entries = new Map<string, GgufEntry>();
    for (const view of views) {
      if (entries.has(view.name)) throw corruptFileError(path, `two of its tensors map to "${view.name}"`);
      entries.set(view.name, createEntry(view, getSource(view.tensor.name)));
    }
    this.entries = entries;
  }

  async readFloat32(name: string, target?: Float32Array): Promise<Float32Array> {
    const entry = getEntry(this.entries, name, this.path);
    const { view } = entry;
    const result = prepareFloat32Target(entry, target);
    if (view.interleavedHeads !== undefined) await readDeinterleaved(entry, view.interleavedHeads, result);
    else if (view.transposed === true) await readTransposed(entry, result);
    else await readPlain(entry, result);
    if (view.hasNormOffset === true) for (let i = 0; i < result.length; i++) result[i] -= 1;
    return result;
  }

  async *readChunks(name: string): AsyncGenerator<Float32Array<ArrayBuffer>> {
    const entry = getEntry(this.entries, name, this.path);
    const { offset, rowBytes, rowElements, view } = entry;
    const { blockSize } = view.tensor.type;
    if (!entry.mappable || rowElements % blockSize !== 0) {
      yield (await this.readFloat32(name)) as Float32Array<ArrayBuffer>;
      return;
    }
    let scratch: Float32Array<ArrayBuffer> | undefined;
    for (const { start, count } of splitRows(entry)) {
      scratch ??= new Float32Array(count * rowElements);
      const part = { ...entry, offset: offset + start * rowBytes, byteLength: count * rowBytes };
      const values = scratch.subarray(0, count * rowElements);
      await readPlain(part, values);
      yield values;
    }
  }

  async readBytes(name: string): Promise<Uint8Array<ArrayBuffer>> {
    const { source, offset, byteLength } = getEntry(this.entries, name, this.path);
    return source.bytes(offset, byteLength);
  }

  async close(): Promise<void> {
    await Promise.all(this.sources.map((source) => source.close()));
  }
}

async function readPlain(entry: GgufEntry, result: Float32Array): Promise<void> {
  const { dtype, name, source, offset, byteLength } = entry;
  const widen = getDequantizeFunction(dtype, name, source.path);
  if (widen === undefined) {
    await source.read(new Uint8Array(result.buffer, result.byteOffset, result.byteLength), offset);
    return;
  }
  const { blockSize, blockBytes } = entry.view.tensor.type;
  await source.stream(offset, byteLength, blockBytes, (bytes, blocksBefore) => {
    const start = blocksBefore * blockSize;
    widen(bytes, result.subarray(start, start + (bytes.length / blockBytes) * blockSize));
  });
}

/** Streams the tensor's rows as float32 with the index of the first row of each chunk. */
async function streamRows(entry: GgufEntry, consume: (rows: Float32Array, firstRow: number) => void): Promise<void> {
  const { dtype, name, source, offset, rowBytes, rowElements, rowCount } = entry;
  if (rowBytes === 0 || rowCount === 0) return;
  const widen = getDequantizeFunction(dtype, name, source.path);
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

async function readDeinterleaved(entry: GgufEntry, heads: number, result: Float32Array): Promise<void> {
  const { rowElements, rowCount } = entry;
  const rowsPerHead = rowCount / heads;
  await streamRows(entry, (rows, firstRow) => {
    for (let start = 0, row = firstRow; start < rows.length; start += rowElements, row++)
      result.set(rows.subarray(start, start + rowElements), deinterleaveRow(row, rowsPerHead) * rowElements);
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
