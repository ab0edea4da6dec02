import { appendFileSync, closeSync, ftruncateSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { LlamaGymError } from "../../core/errors.js";
import { getSystemErrorCode, toWriteError } from "../../models/files/file-errors.js";

/**
 * An append-only file. A call returns after the operating system has accepted the data, so it survives a killed process.
 * Every method throws FILE_WRITE_FAILED.
 */
export class AppendFile {
  private descriptor: number | undefined;

  private constructor(
    readonly path: string,
    flags: "a" | "ax",
  ) {
    try {
      mkdirSync(dirname(path), { recursive: true });
    } catch (error) {
      throw toWriteError(path, error);
    }
    try {
      this.descriptor = openSync(path, flags);
    } catch (error) {
      throw getSystemErrorCode(error) === "EEXIST" ? createExistsError(path) : toWriteError(path, error);
    }
  }

  /** Creates a file and its folder. @throws INVALID_STATE if the file exists. */
  static create(path: string): AppendFile {
    return new AppendFile(path, "ax");
  }

  /** Opens a file at its end; creates it if it does not exist. */
  static open(path: string): AppendFile {
    return new AppendFile(path, "a");
  }

  get closed(): boolean {
    return this.descriptor === undefined;
  }

  append(data: string | Uint8Array): void {
    this.write((descriptor) => appendFileSync(descriptor, data));
  }

  /** Truncates the file to `size` bytes. */
  truncate(size: number): void {
    this.write((descriptor) => ftruncateSync(descriptor, size));
  }

  close(): void {
    if (this.descriptor === undefined) return;
    const { descriptor } = this;
    this.descriptor = undefined;
    closeSync(descriptor);
  }

  private write(operation: (descriptor: number) => void): void {
    if (this.descriptor === undefined) {
      throw new LlamaGymError("INVALID_STATE", `${this.path} is closed: log before the tracker is closed.`);
    }
    try {
      operation(this.descriptor);
    } catch (error) {
      throw toWriteError(this.path, error);
    }
  }
}

function createExistsError(path: string): LlamaGymError {
  return new LlamaGymError(
    "INVALID_STATE",
    `${path} already exists: it belongs to another run. Choose another folder, or resume that run.`,
  );
}
