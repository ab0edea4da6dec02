import { fs } from "#platform";
import { LlamaGymError } from "../../core/errors.js";
import type { OpenAppendFile } from "../../core/platform/ports.js";
import { getSystemErrorCode, toWriteError } from "../../core/files/file-errors.js";

/**
 * An append-only file. A call returns after the operating system has accepted the data, so it
 * survives a killed process. Every method throws FILE_WRITE_FAILED.
 */
export class AppendFile {
  private constructor(
    readonly path: string,
    private file: OpenAppendFile | undefined,
  ) {}

  /** Creates a file and its folder. @throws INVALID_STATE if the file exists. */
  static create(path: string): AppendFile {
    return new AppendFile(path, openFile(path, "create"));
  }

  /** Opens a file at its end; creates it if it does not exist. */
  static open(path: string): AppendFile {
    return new AppendFile(path, openFile(path, "append"));
  }

  get closed(): boolean {
    return this.file === undefined;
  }

  append(data: string | Uint8Array): void {
    this.write((file) => file.append(data));
  }

  truncate(size: number): void {
    this.write((file) => file.truncate(size));
  }

  close(): void {
    this.file?.close();
    this.file = undefined;
  }

  private write(operation: (file: OpenAppendFile) => void): void {
    if (this.file === undefined)
      throw new LlamaGymError("INVALID_STATE", `${this.path} is closed: log before the tracker is closed.`);
    try {
      if (!this.file.isLinked()) throw new Error("it was deleted or replaced while it was written");
      operation(this.file);
    } catch (error) {
      throw toWriteError(this.path, error);
    }
  }
}

function openFile(path: string, mode: "create" | "append"): OpenAppendFile {
  try {
    return fs.openAppend(path, mode);
  } catch (error) {
    if (getSystemErrorCode(error) !== "EEXIST" || !fs.existsSync(path)) throw toWriteError(path, error);
    throw new LlamaGymError(
      "INVALID_STATE",
      `${path} already exists: it belongs to another run. Choose another folder, or resume that run.`,
    );
  }
}
