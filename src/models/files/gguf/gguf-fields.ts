import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError } from "../file-errors.js";
import type { GgufValue } from "./header-cursor.js";
import type { GgufMetadata } from "./gguf-header.js";

/** A float32 as the shortest decimal that rounds to it: 1e-5 for 0.000009999999747378752. */
export function toShortestDecimal(value: number): number {
  for (let digits = 1; digits <= 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === Math.fround(value)) return short;
  }
  return value;
}

/** Reads the metadata of one architecture by the part of the key after the architecture's name. */
export class GgufFields {
  readonly path: string;
  readonly architecture: string;
  private readonly metadata: GgufMetadata;

  constructor(path: string, metadata: GgufMetadata) {
    this.path = path;
    this.metadata = metadata;
    const architecture = metadata.get("general.architecture");
    if (typeof architecture !== "string") throw corruptFileError(path, "it does not say its general.architecture");
    this.architecture = architecture;
  }

  /** A value by its whole key. */
  raw(key: string): GgufValue | undefined {
    return this.metadata.get(key);
  }

  /** A string by its whole key, or undefined. */
  string(key: string): string | undefined {
    const value = this.metadata.get(key);
    if (value === undefined || typeof value === "string") return value;
    throw corruptFileError(this.path, `its metadata field "${key}" is not a string`);
  }

  /** A boolean by its whole key, or undefined. */
  boolean(key: string): boolean | undefined {
    const value = this.metadata.get(key);
    if (value === undefined || typeof value === "boolean") return value;
    throw corruptFileError(this.path, `its metadata field "${key}" is not a boolean`);
  }

  /** A non-negative integer by its whole key, or undefined. */
  index(key: string): number | undefined {
    const value = this.metadata.get(key);
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
    throw corruptFileError(
      this.path,
      `its metadata field "${key}" is ${describeValue(value)}, not a whole number from 0 on`,
    );
  }

  /** A number of the architecture, or undefined. A list of the same number for every layer counts as that number. */
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
        `${this.path} has another "${key}" for each layer, which is not supported.`,
      );
    }
    throw corruptFileError(this.path, `its metadata field "${key}" is ${describeValue(value)}, not a number`);
  }

  /** A number that the architecture cannot do without. Throws FILE_CORRUPT when it is missing. */
  number(name: string): number {
    const value = this.optionalNumber(name);
    if (value === undefined) throw corruptFileError(this.path, `its metadata lacks "${this.architecture}.${name}"`);
    return value;
  }

  /** A whole number from 1 on. Throws FILE_CORRUPT for anything else. */
  size(name: string): number {
    const value = this.number(name);
    if (Number.isInteger(value) && value >= 1) return value;
    throw corruptFileError(this.path, `its metadata field "${this.architecture}.${name}" is ${value}, not a size`);
  }
}

function describeValue(value: GgufValue): string {
  return typeof value === "object" ? `a list of ${value.length}` : JSON.stringify(value);
}
