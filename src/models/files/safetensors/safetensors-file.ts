import { FileSource } from "../file-source.js";
import { countElements } from "../../../core/numbers.js";
import { getEntry, prepareFloat32Target, splitRows, type WeightEntry, type WeightFile } from "../weight-file.js";
import { getWidenFunction } from "./dtypes.js";
import { readSafetensorsHeader } from "./safetensors-header.js";

export class SafetensorsFile implements WeightFile {
  readonly path: string;

  private constructor(
    private readonly source: FileSource,
    readonly entries: ReadonlyMap<string, WeightEntry>,
    /** Metadata of the header, such as `{ format: "pt" }`. */
    readonly metadata: Readonly<Record<string, string>>,
  ) {
    this.path = source.path;
  }

  /**
   * Opens a file and validates its header. @throws FILE_NOT_FOUND, FILE_READ_FAILED, FILE_CORRUPT,
   * FORMAT_UNSUPPORTED.
   */
  static async open(path: string): Promise<SafetensorsFile> {
    const source = await FileSource.open(path);
    try {
      const { entries, metadata } = await readSafetensorsHeader(source);
      return new SafetensorsFile(source, entries, metadata);
    } catch (error) {
      await source.close();
      throw error;
    }
  }

  async readFloat32(name: string, target?: Float32Array): Promise<Float32Array> {
    const entry = getEntry(this.entries, name, this.path);
    return this.readEntry(entry, prepareFloat32Target(entry, target));
  }

  async *readChunks(name: string): AsyncGenerator<Float32Array<ArrayBuffer>> {
    const entry = getEntry(this.entries, name, this.path);
    const rowElements = countElements(entry.shape.slice(1));
    const rowBytes = entry.byteLength / (entry.shape[0] ?? 1);
    let scratch: Float32Array<ArrayBuffer> | undefined;
    for (const { start, count } of splitRows(entry)) {
      scratch ??= new Float32Array(count * rowElements);
      const part = { ...entry, offset: entry.offset + start * rowBytes, byteLength: count * rowBytes };
      yield await this.readEntry(part, scratch.subarray(0, count * rowElements));
    }
  }

  private async readEntry<Target extends Float32Array>(entry: WeightEntry, result: Target): Promise<Target> {
    const widen = getWidenFunction(entry.dtype, entry.name, this.path);
    if (widen === undefined) {
      await this.source.read(new Uint8Array(result.buffer, result.byteOffset, result.byteLength), entry.offset);
    } else if (result.length > 0) {
      const bytesPerElement = entry.byteLength / result.length;
      await this.source.stream(entry.offset, entry.byteLength, bytesPerElement, (bytes, elementsBefore) => {
        widen(bytes, result.subarray(elementsBefore, elementsBefore + bytes.length / bytesPerElement));
      });
    }
    return result;
  }

  async readBytes(name: string): Promise<Uint8Array<ArrayBuffer>> {
    const { offset, byteLength } = getEntry(this.entries, name, this.path);
    return this.source.bytes(offset, byteLength);
  }

  async close(): Promise<void> {
    await this.source.close();
  }
}
