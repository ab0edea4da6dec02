/** Thrown when a value reaches past the bytes that have been read so far. */
export class EndOfBytes extends Error {}

/** A fault of the format, in words; the caller adds the file's name. */
export class FormatFault extends Error {}

/** A metadata array: strings, numbers, or (rarely) arrays. */
export type GgufArray = readonly GgufValue[] | Float32Array | Float64Array | Int32Array | Uint32Array | Uint8Array;

/** A metadata value. 64-bit integers are given as numbers. */
export type GgufValue = number | boolean | string | GgufArray;

/** Value type code to name and bytes; 0 bytes for strings and arrays. */
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

/** Walks over the bytes of a GGUF header. Never reads or allocates beyond what the bytes and the file's size allow. */
export class HeaderCursor {
  position = 0;
  /** Bytes of a length or count: 4 in version 1 of the format, else 8. */
  sizeBytes = 8;
  private readonly buffer: Buffer;
  private readonly view: DataView;
  private readonly fileSize: number;

  constructor(bytes: Uint8Array<ArrayBuffer>, fileSize: number) {
    this.buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.fileSize = fileSize;
  }

  /** Moves over `length` bytes and gives the place where they begin. */
  private take(length: number): number {
    const start = this.position;
    if (start + length > this.fileSize) {
      throw new FormatFault(`its header reaches beyond its ${this.fileSize} bytes`);
    }
    if (start + length > this.view.byteLength) throw new EndOfBytes();
    this.position = start + length;
    return start;
  }

  uint32(): number {
    return this.view.getUint32(this.take(4), true);
  }

  /** A length, count, dimension or offset. */
  size(what: string): number {
    if (this.sizeBytes === 4) return this.uint32();
    return this.wide(what);
  }

  /** A 64-bit offset, which has 8 bytes in every version. */
  wide(what: string): number {
    const value = this.view.getBigUint64(this.take(8), true);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new FormatFault(`${what} is ${value}`);
    return Number(value);
  }

  /** A number of things of at least `bytesEach`, which the rest of the file must be able to hold. */
  count(what: string, bytesEach: number): number {
    const count = this.size(`the number of ${what}`);
    if (count * bytesEach > this.fileSize - this.position) {
      throw new FormatFault(`it claims ${count} ${what}, more than its ${this.fileSize} bytes can hold`);
    }
    return count;
  }

  string(what: string): string {
    const length = this.size(`the length of ${what}`);
    const start = this.take(length);
    return this.buffer.toString("utf8", start, start + length);
  }

  /** A metadata value with its type in front. */
  value(key: string): GgufValue {
    return this.typedValue(this.uint32(), key, 0);
  }

  private typedValue(type: number, key: string, depth: number): GgufValue {
    if (type === STRING) return this.string(`"${key}"`);
    if (type === ARRAY) return this.array(key, depth + 1);
    const bytes = this.bytesOf(type, key);
    return this.scalar(type, this.take(bytes));
  }

  private bytesOf(type: number, key: string): number {
    if (type >= valueTypes.length) throw new FormatFault(`the metadata field "${key}" has the unknown type ${type}`);
    return valueTypes[type][1];
  }

  private scalar(type: number, at: number): number | boolean {
    const { view } = this;
    switch (valueTypes[type][0]) {
      case "uint8":
        return view.getUint8(at);
      case "int8":
        return view.getInt8(at);
      case "uint16":
        return view.getUint16(at, true);
      case "int16":
        return view.getInt16(at, true);
      case "uint32":
        return view.getUint32(at, true);
      case "int32":
        return view.getInt32(at, true);
      case "float32":
        return view.getFloat32(at, true);
      case "bool":
        return view.getUint8(at) !== 0;
      case "uint64":
        return Number(view.getBigUint64(at, true));
      case "int64":
        return Number(view.getBigInt64(at, true));
      default:
        return view.getFloat64(at, true);
    }
  }

  private array(key: string, depth: number): GgufArray {
    if (depth > MAX_ARRAY_DEPTH) throw new FormatFault(`the metadata field "${key}" has arrays in arrays in arrays`);
    const type = this.uint32();
    const bytesEach = this.bytesOf(type, key);
    const smallest = type === STRING ? this.sizeBytes : type === ARRAY ? 4 + this.sizeBytes : bytesEach;
    const length = this.count(`elements of "${key}"`, smallest);
    if (type === STRING || type === ARRAY) {
      const values: GgufValue[] = [];
      for (let i = 0; i < length; i++) values.push(this.typedValue(type, key, depth));
      return values;
    }
    const start = this.take(length * bytesEach);
    const bytes = this.buffer.buffer.slice(
      this.buffer.byteOffset + start,
      this.buffer.byteOffset + start + length * bytesEach,
    ) as ArrayBuffer;
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
        return Array.from({ length }, (_, i) => this.scalar(type, start + i * bytesEach));
    }
  }
}
