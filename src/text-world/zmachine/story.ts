import { LlamaGymError } from "../../core/errors.js";
import type { Instruction } from "./instruction.js";

const HEADER_LENGTH = 64;
/** Unit of packed addresses and of the header's file length in bytes, by version. */
const UNIT_BY_VERSION = new Map([
  [5, 4],
  [8, 8],
]);

/**
 * A story file for the Z-machine (Z-Machine Standards Document 1.1), versions 5 and 8.
 * Validated once; machines share it with the decoded contents of its static memory.
 */
export class Story {
  /** File name for messages. */
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly version: number;
  /** Bytes per unit of a packed address. */
  readonly unit: number;
  /** End of writable memory. */
  readonly staticBase: number;
  /** Decoded instructions by address, filled lazily. */
  readonly instructions: (Instruction | undefined)[];
  readonly strings = new Map<number, string>();

  /**
   * @throws FILE_CORRUPT for a truncated or modified file, FORMAT_UNSUPPORTED for another version.
   */
  constructor(file: Uint8Array, name: string) {
    this.name = name;
    if (file.length < HEADER_LENGTH)
      throw corruptStoryError(name, `it has ${file.length} bytes, less than the ${HEADER_LENGTH} of a header`);
    this.version = file[0];
    const unit = UNIT_BY_VERSION.get(this.version);
    if (unit === undefined)
      throw new LlamaGymError(
        "FORMAT_UNSUPPORTED",
        `${name} is not a Z-machine story of version 5 or 8 (its first byte is ${this.version}). ` +
          "TextWorld makes .z8 files.",
      );
    this.unit = unit;
    const length = readWord(file, 0x1a) * unit;
    if (length > file.length)
      throw corruptStoryError(name, `its header announces ${length} bytes, it has ${file.length}`);
    // Slicing a Buffer would share its memory.
    this.bytes = new Uint8Array(length > 0 ? file.subarray(0, length) : file);
    const sum = this.bytes.subarray(HEADER_LENGTH).reduce((total, byte) => (total + byte) & 0xffff, 0);
    if (length > 0 && sum !== readWord(file, 0x1c))
      throw corruptStoryError(name, "its checksum does not match its content");
    // Filled at once so that V8 keeps a dense array.
    this.instructions = Array.from(this.bytes, () => undefined);
    this.staticBase = readWord(file, 0x0e);
    if (this.staticBase < HEADER_LENGTH || this.staticBase > this.bytes.length)
      throw corruptStoryError(name, `its writable memory ends at ${this.staticBase}`);
  }
}

/** Reads a 16-bit big-endian word. */
export function readWord(bytes: Uint8Array, address: number): number {
  return (bytes[address] << 8) | bytes[address + 1];
}

function corruptStoryError(name: string, reason: string): LlamaGymError {
  return new LlamaGymError("FILE_CORRUPT", `${name} is a broken story file: ${reason}. Copy or make it again.`);
}
