import { decodeUtf8 } from "../../../core/bytes.js";

/** Thrown when a value exceeds the bytes read so far. */
export class TruncatedFileError extends Error {}

/** A violation of the format; the caller adds the file's name. */
export class FormatError extends Error {}

/** A metadata array: strings, numbers, or (rarely) arrays. */
export type GgufArray = readonly GgufValue[] | Float32Array | Float64Array | Int32Array | Uint32Array | Uint8Array;

/** A metadata value; 64-bit integers become numbers. */
export type GgufValue = number | boolean | string | GgufArray;

/** Name and size in bytes by value type code; 0 for strings and arrays. */
const valueTypes: readonly (readonly [string, number])[] = [
  ["uint8", 1],
  ["int8", 1],
  ["uint16", 2],
  ["int16", 2],
  ["uint32", 4],
  ["int32", 4],
  ["float32", 4],
  ["bool", 1],
  ["string", 0],
  ["array", 0],
  ["uint64", 8],
  ["int64", 8],
  ["float64", 8],
];

const STRING = 8;
const ARRAY = 9;
const MAX_ARRAY_DEPTH = 4;

/**
 * Reads the values of a GGUF header without exceeding its bytes or allocating more than the file
 * could hold.
 */
export class HeaderCursor {
  position = 0;
  /** Bytes per length or count: 4 in version 1, else 8. */
  sizeBytes = 8;
  private readonly view: DataView;

  constructor(
    private readonly bytes: Uint8Array<ArrayBuffer>,
    private readonly fileSize: number,
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Advances by `length` bytes and returns their offset. */
  private advance(length: number): number {
    const start = this.position;
    if (start + length > this.fileSize) throw new FormatError(`its header reaches beyond its ${this.fileSize} bytes`);
    if (start + length > this.view.byteLength) throw new TruncatedFileError();
    this.position = start + length;
    return start;
  }

  readUint32(): number {
    return this.view.getUint32(this.advance(4), true);
  }

  /** Reads a length, count, dimension or offset. */
  readSize(label: string): number {
    if (this.sizeBytes === 4) return this.readUint32();
    return this.readUint64(label);
  }

  /** Reads an offset, which is 64-bit in every version. */
  readUint64(label: string): number {
    const value = this.view.getBigUint64(this.advance(8), true);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new FormatError(`${label} is ${value}`);
    return Number(value);
  }

  /** Reads a count of items of at least `bytesPerItem`, which must fit the rest of the file. */
  count(label: string, bytesPerItem: number): number {
    const count = this.readSize(`the number of ${label}`);
    if (count * bytesPerItem > this.fileSize - this.position)
      throw new FormatError(`it claims ${count} ${label}, more than its ${this.fileSize} bytes can hold`);
    return count;
  }

  readString(label: string): string {
    const length = this.readSize(`the length of ${label}`);
    const start = this.advance(length);
    return decodeUtf8(this.bytes.subarray(start, start + length));
  }

  /** Reads a metadata value prefixed by its type. */
  value(key: string): GgufValue {
    return this.readTypedValue(this.readUint32(), key, 0);
  }

  private readTypedValue(type: number, key: string, depth: number): GgufValue {
    if (type === STRING) return this.readString(`"${key}"`);
    if (type === ARRAY) return this.readArray(key, depth + 1);
    const bytes = this.getTypeBytes(type, key);
    return this.readScalar(type, this.advance(bytes));
  }

  private getTypeBytes(type: number, key: string): number {
    if (type >= valueTypes.length) throw new FormatError(`the metadata field "${key}" has the unknown type ${type}`);
    return valueTypes[type][1];
  }

  private readScalar(type: number, offset: number): number | boolean {
    const { view } = this;
    switch (valueTypes[type][0]) {
      case "uint8":
        return view.getUint8(offset);
      case "int8":
        return view.getInt8(offset);
      case "uint16":
        return view.getUint16(offset, true);
      case "int16":
        return view.getInt16(offset, true);
      case "uint32":
        return view.getUint32(offset, true);
      case "int32":
        return view.getInt32(offset, true);
      case "float32":
        return view.getFloat32(offset, true);
      case "bool":
        return view.getUint8(offset) !== 0;
      case "uint64":
        return Number(view.getBigUint64(offset, true));
      case "int64":
        return Number(view.getBigInt64(offset, true));
      default:
        return view.getFloat64(offset, true);
    }
  }

  private readArray(key: string, depth: number): GgufArray {
    if (depth > MAX_ARRAY_DEPTH) throw new FormatError(`the metadata field "${key}" nests arrays too deeply`);
    const type = this.readUint32();
    const bytesPerItem = this.getTypeBytes(type, key);
    const minBytes = type === STRING ? this.sizeBytes : type === ARRAY ? 4 + this.sizeBytes : bytesPerItem;
    const length = this.count(`elements of "${key}"`, minBytes);
    if (type === STRING || type === ARRAY) {
      const values: GgufValue[] = [];
      for (let i = 0; i < length; i++) values.push(this.readTypedValue(type, key, depth));
      return values;
    }
    const start = this.advance(length * bytesPerItem);
    const bytes = this.bytes.slice(start, start + length * bytesPerItem).buffer;
    switch (valueTypes[type][0]) {
      case "float32":
        return new Float32Array(bytes);
      case "float64":
        return new Float64Array(bytes);
      case "int32":
        return new Int32Array(bytes);
      case "uint32":
        return new Uint32Array(bytes);
      case "uint8":
        return new Uint8Array(bytes);
      default:
        return Array.from({ length }, (_, i) => this.readScalar(type, start + i * bytesPerItem));
    }
  }
}
