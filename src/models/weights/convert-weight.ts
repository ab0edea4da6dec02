import { viewBytes } from "../../core/bytes.js";
import { countElements } from "../../core/numbers.js";
import { getPartNames, type Int8Parameter, type StoredParameter } from "./stored-parameter.js";
import { BLOCK_SIZE, createCodes, quantize, roundRows, transposeCodes } from "./quantize.js";

/** Receives bytes of one of a parameter's tensors, and where in the tensor they begin. */
export type WritePart = (part: string, bytes: Uint8Array, offset: number) => Promise<void>;

/** A tensor in graphs that a parameter is converted to. */
export interface PartLayout {
  readonly part: string;
  readonly byteLength: number;
  /** Name of the tensor that has the same bytes and is written instead. */
  readonly sameAs?: string;
}

/** Lists a parameter's tensors in graphs. */
export function listParts(name: string, parameter: StoredParameter): PartLayout[] {
  const names = getPartNames(name, parameter);
  const count = countElements(parameter.shape);
  switch (parameter.kind) {
    case "quantized": {
      const [bytes, codes, scales, zeroPoints] = names;
      const codeBytes = (count * parameter.bits) / 8;
      const blocks = count / BLOCK_SIZE;
      return [
        { part: bytes, byteLength: codeBytes },
        { part: codes, byteLength: codeBytes, sameAs: bytes },
        { part: scales, byteLength: 4 * blocks },
        { part: zeroPoints, byteLength: Math.ceil((blocks * parameter.bits) / 8) },
      ];
    }
    case "int8":
    case "int8Head": {
      const lengths = [count, 4 * parameter.shape[0], count];
      return names.map((part, i) => ({ part, byteLength: lengths[i] }));
    }
    default:
      return [{ part: names[0], byteLength: 4 * count }];
  }
}

/**
 * Converts a parameter to the tensors that graphs use. Its values come in chunks of whole rows as
 * they are stored: [out, in], or [in, out] if `transposed`. Tensors with `sameAs` are not written.
 */
export async function convertWeight(
  name: string,
  parameter: StoredParameter,
  chunks: AsyncIterable<Float32Array>,
  { transposed, write }: { readonly transposed: boolean; readonly write: WritePart },
): Promise<void> {
  const names = getPartNames(name, parameter);
  switch (parameter.kind) {
    case "int8":
      return convertToInt8(names, parameter, chunks, { transposed, write });
    case "int8Head":
      return convertHead(names, parameter, chunks, write);
    case "quantized": {
      const [rows, columns] = parameter.shape;
      const source = transposed ? transposeChunks(chunks, columns, rows) : chunks;
      return convertToBlocks(names, parameter.bits, source, write);
    }
    default:
      return writeValues(names[0], chunks, write);
  }
}

async function writeValues(part: string, chunks: AsyncIterable<Float32Array>, write: WritePart): Promise<void> {
  let offset = 0;
  for await (const values of chunks) {
    await write(part, viewBytes(values), offset);
    offset += values.byteLength;
  }
}

/** Rounds rows of an output matrix: codes [out, in], scales and codes [in, out]. */
async function convertHead(
  [codesPart, scalesPart, transposedPart]: readonly string[],
  { shape: [rows, columns], codeType }: Int8Parameter,
  chunks: AsyncIterable<Float32Array>,
  write: WritePart,
): Promise<void> {
  const transposed = createCodes(codeType, rows * columns);
  let row = 0;
  for await (const values of chunks) {
    const { codes, scales } = roundRows(values, columns);
    transposeCodes(codes, { codes: transposed, rows, columns, row });
    await write(codesPart, viewBytes(codes), row * columns);
    await write(scalesPart, viewBytes(scales), 4 * row);
    row += scales.length;
  }
  await write(transposedPart, viewBytes(transposed), 0);
}

/** Rounds blocks of a matrix [out, in]. */
async function convertToBlocks(
  [bytesPart, , scalesPart, zeroPointsPart]: readonly string[],
  bits: 4 | 8,
  chunks: AsyncIterable<Float32Array>,
  write: WritePart,
): Promise<void> {
  let start = 0;
  for await (const values of chunks) {
    const { codes, scales } = quantize(values, bits);
    await write(bytesPart, codes, (start * bits) / 8);
    await write(scalesPart, viewBytes(scales), (4 * start) / BLOCK_SIZE);
    start += values.length;
  }
  // The middle code: 8 in both halves of a byte, or 128.
  const zeroPoints = new Uint8Array(Math.ceil((start * bits) / (8 * BLOCK_SIZE))).fill(bits === 4 ? 0x88 : 0x80);
  await write(zeroPointsPart, zeroPoints, 0);
}

/** Rounds a matrix to codes [in, out] with a scale per output. */
async function convertToInt8(
  [codesPart, scalesPart]: readonly string[],
  { shape: [rows, columns], codeType }: Int8Parameter,
  chunks: AsyncIterable<Float32Array>,
  { transposed, write }: { readonly transposed: boolean; readonly write: WritePart },
): Promise<void> {
  const transposedCodes = createCodes(codeType, rows * columns);
  let row = 0;
  for await (const values of transposed ? transposeChunks(chunks, columns, rows) : chunks) {
    const { codes, scales } = roundRows(values, columns);
    transposeCodes(codes, { codes: transposedCodes, rows, columns, row });
    await write(scalesPart, viewBytes(scales), 4 * row);
    row += scales.length;
  }
  await write(codesPart, viewBytes(transposedCodes), 0);
}

/** Transposes a matrix [rows, columns] that comes in chunks. */
async function* transposeChunks(
  chunks: AsyncIterable<Float32Array>,
  rows: number,
  columns: number,
): AsyncGenerator<Float32Array> {
  const result = new Float32Array(rows * columns);
  let row = 0;
  for await (const values of chunks)
    for (let start = 0; start < values.length; start += columns, row++)
      for (let column = 0; column < columns; column++) result[column * rows + row] = values[start + column];
  yield result;
}

/** Transposes [rows, columns] to [columns, rows]. */
export function transposeMatrix(values: Float32Array, rows: number, columns: number): Float32Array {
  const result = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) result[column * rows + row] = values[row * columns + column];
  }
  return result;
}
