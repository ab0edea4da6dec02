import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError } from "../../../core/files/file-errors.js";
import type { GgufValue } from "./header-cursor.js";
import type { GgufMetadata } from "./gguf-header.js";

/** Returns the shortest decimal that rounds to a float32: 1e-5 for 0.000009999999747378752. */
export function toShortestDecimal(value: number): number {
  for (let digits = 1; digits <= 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === Math.fround(value)) return short;
  }
  return value;
}

/** Typed access to metadata, by full key or by name within the architecture. */
export class GgufFields {
  readonly architecture: string;

  constructor(
    readonly path: string,
    private readonly metadata: GgufMetadata,
  ) {
    const architecture = metadata.get("general.architecture");
    if (typeof architecture !== "string") throw corruptFileError(path, 'its metadata lacks "general.architecture"');
    this.architecture = architecture;
  }

  /** Returns a value by its full key. */
  raw(key: string): GgufValue | undefined {
    return this.metadata.get(key);
  }

  /** Reads an optional string by its full key. */
  string(key: string): string | undefined {
    const value = this.metadata.get(key);
    if (value === undefined || typeof value === "string") return value;
    throw corruptFileError(this.path, `its metadata field "${key}" is not a string`);
  }

  /** Reads an optional boolean by its full key. */
  boolean(key: string): boolean | undefined {
    const value = this.metadata.get(key);
    if (value === undefined || typeof value === "boolean") return value;
    throw corruptFileError(this.path, `its metadata field "${key}" is not a boolean`);
  }

  /** Reads an optional integer >= 0 by its full key. */
  index(key: string): number | undefined {
    const value = this.metadata.get(key);
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
    throw corruptFileError(this.path, `its metadata field "${key}" is ${describeValue(value)}, not an integer >= 0`);
  }

  /**
   * Reads an optional number of the architecture. A list of equal values, one per layer, counts as
   * that value.
   */
  optionalNumber(name: string): number | undefined {
    const key = `${this.architecture}.${name}`;
    const value = this.metadata.get(key);
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isFinite(value)) return toShortestDecimal(value);
    if (typeof value === "object" && value.length > 0) {
      const [first] = value;
      if (typeof first === "number" && value.every((item) => item === first)) return toShortestDecimal(first);
      throw new LlamaGymError(
        "MODEL_UNSUPPORTED",
        `${this.path} has a different "${key}" per layer, which is not supported.`,
      );
    }
    throw corruptFileError(this.path, `its metadata field "${key}" is ${describeValue(value)}, not a number`);
  }

  /** Reads a required number. @throws FILE_CORRUPT when it is missing. */
  number(name: string): number {
    const value = this.optionalNumber(name);
    if (value === undefined) throw corruptFileError(this.path, `its metadata lacks "${this.architecture}.${name}"`);
    return value;
  }

  /** Reads an integer >= 1. @throws FILE_CORRUPT for anything else. */
  size(name: string): number {
    const value = this.number(name);
    if (Number.isInteger(value) && value >= 1) return value;
    throw corruptFileError(this.path, `its metadata field "${this.architecture}.${name}" is ${value}, not a size`);
  }
}

function describeValue(value: GgufValue): string {
  return typeof value === "object" ? `a list of ${value.length}` : JSON.stringify(value);
}
