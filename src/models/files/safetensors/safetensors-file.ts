import { FileSource } from "../file-source.js";
import { getEntry, prepareFloat32Target, type WeightEntry, type WeightFile } from "../weight-file.js";
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
   * Opens a file and validates its header. @throws FILE_NOT_FOUND, FILE_READ_FAILED, FILE_CORRUPT, FORMAT_UNSUPPORTED.
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
    const widen = getWidenFunction(entry.dtype, name, this.path);
    const result = prepareFloat32Target(entry, target);
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
