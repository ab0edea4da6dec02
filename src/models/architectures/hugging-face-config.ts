import { LlamaGymError } from "../../core/errors.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../files/json-file.js";

/** Larger than any model dimension; prevents corrupt files from requesting absurd amounts of memory. */
const MAX_SIZE = 2 ** 31 - 1;

/**
 * Typed access to the fields of a config.json or of an object in it. Absent fields take the
 * caller's fallback, the default of Transformers' configuration class.
 */
export class HuggingFaceConfig {
  /** @param parentField the field that contains this object, for messages */
  constructor(
    readonly json: JsonObject,
    readonly path: string,
    private readonly parentField?: string,
  ) {}

  /** Whether the field is present, even as null. */
  has(field: string): boolean {
    return Object.hasOwn(this.json, field);
  }

  /** Reads an integer in [1, max]; null counts as absent. */
  size(field: string, fallback?: number, max = MAX_SIZE): number {
    const value = this.getValue(field);
    if (value === undefined) return this.fallbackOrThrow(field, fallback, "an integer >= 1");
    if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max) return value;
    throw this.invalidFieldError(field, `an integer from 1 to ${max}`);
  }

  /** Reads an integer >= 1; null means none, and only an absent field takes the fallback. */
  optionalSize(field: string, fallback?: number): number | undefined {
    if (!this.has(field)) return fallback;
    return this.getValue(field) === undefined ? undefined : this.size(field);
  }

  /** Reads an integer; null means none, and only an absent field takes the fallback. */
  optionalInteger(field: string, fallback?: number): number | undefined {
    if (!this.has(field)) return fallback;
    const value = this.getValue(field);
    if (value === undefined || (typeof value === "number" && Number.isInteger(value))) return value;
    throw this.invalidFieldError(field, "an integer or null");
  }

  /** Reads an integer >= 0. */
  count(field: string, fallback: number): number {
    return this.getValue(field) === 0 ? 0 : this.size(field, fallback);
  }

  /** Reads a number > 0; null counts as absent. */
  positive(field: string, fallback?: number): number {
    const value = this.getValue(field);
    if (value === undefined) return this.fallbackOrThrow(field, fallback, "a number > 0");
    if (typeof value === "number" && Number.isFinite(value) && value > 0) return value;
    throw this.invalidFieldError(field, "a number > 0");
  }

  /** Reads a number > 0, or undefined where absent or null. */
  optionalPositive(field: string): number | undefined {
    return this.getValue(field) === undefined ? undefined : this.positive(field);
  }

  flag(field: string, fallback: boolean): boolean {
    const value = this.getValue(field);
    if (value === undefined || typeof value === "boolean") return value ?? fallback;
    throw this.invalidFieldError(field, "true or false");
  }

  text(field: string): string | undefined {
    const value = this.getValue(field);
    if (value === undefined || typeof value === "string") return value;
    throw this.invalidFieldError(field, "a string");
  }

  /** Reads a list of numbers, or undefined where absent or null. */
  numbers(field: string): readonly number[] | undefined {
    const value = this.getValue(field);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === "number")) return value;
    throw this.invalidFieldError(field, "a list of numbers");
  }

  /** Reads a list of strings, or undefined where absent or null. */
  texts(field: string): readonly string[] | undefined {
    const value = this.getValue(field);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
    throw this.invalidFieldError(field, "a list of strings");
  }

  /** Reads an object, or undefined where absent or null. */
  object(field: string): HuggingFaceConfig | undefined {
    const value = this.getValue(field);
    if (value === undefined) return undefined;
    if (isJsonObject(value)) return new HuggingFaceConfig(value, this.path, this.qualifyName(field));
    throw this.invalidFieldError(field, "an object");
  }

  /** Creates FILE_CORRUPT for an invalid field. */
  invalidFieldError(field: string, expected: string): LlamaGymError {
    const found = this.has(field) ? `is ${formatExcerpt(this.json[field])}` : "is missing";
    return new LlamaGymError(
      "FILE_CORRUPT",
      `"${this.qualifyName(field)}" in ${this.path} ${found}; expected ${expected}. Correct the file or download it again.`,
    );
  }

  /** Creates MODEL_UNSUPPORTED for an unsupported field value. */
  unsupportedFieldError(field: string, supported: string): LlamaGymError {
    return new LlamaGymError(
      "MODEL_UNSUPPORTED",
      `"${this.qualifyName(field)}" in ${this.path} is ${formatExcerpt(this.json[field])}, which is not supported. ${supported}`,
    );
  }

  private getValue(field: string): JsonValue | undefined {
    return this.has(field) ? (this.json[field] ?? undefined) : undefined;
  }

  private fallbackOrThrow(field: string, fallback: number | undefined, expected: string): number {
    if (fallback === undefined) throw this.invalidFieldError(field, expected);
    return fallback;
  }

  private qualifyName(field: string): string {
    return this.parentField === undefined ? field : `${this.parentField}.${field}`;
  }
}

function formatExcerpt(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
