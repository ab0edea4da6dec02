import { appendFileSync, closeSync, ftruncateSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { LlamaGymError } from "../../core/errors.js";
import { getSystemErrorCode, toWriteError } from "../../models/files/file-errors.js";

/**
 * A file that grows at its end. What was appended is with the system when the call returns, so that it outlives the
 * process, however that ends. Every method throws FILE_WRITE_FAILED.
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

  /** Makes a file and its folder. Throws INVALID_STATE where there is one already. */
  static create(path: string): AppendFile {
    return new AppendFile(path, "ax");
  }

  /** Goes on behind what the file holds; makes it when it is not there. */
  static open(path: string): AppendFile {
    return new AppendFile(path, "a");
  }

  get closed(): boolean {
    return this.descriptor === undefined;
  }

  append(data: string | Uint8Array): void {
    this.write((descriptor) => appendFileSync(descriptor, data));
  }

  /** Takes away what the file holds beyond `size` bytes. */
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
    `${path} is there already: it belongs to another run. Choose another folder, or resume that run.`,
  );
}
