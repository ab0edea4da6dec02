import { LlamaGymError } from "../../core/errors.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../files/json-file.js";

/** Larger than any dimension of a model; keeps a damaged file from asking for absurd amounts of memory. */
const MAX_SIZE = 2 ** 31 - 1;

/**
 * The fields of a config.json (or of an object inside it), each read with the type that it must have. A field that is
 * absent takes the default of Transformers' configuration class, which the caller gives. Errors name field and file.
 */
export class HuggingFaceConfig {
  /** `owner` is the field that holds this object, for messages. */
  constructor(
    readonly json: JsonObject,
    readonly path: string,
    private readonly parentField?: string,
  ) {}

  /** Whether the field is there, even as null. */
  has(field: string): boolean {
    return Object.hasOwn(this.json, field);
  }

  /** A whole number from 1 to `largest`; null counts as absent. */
  size(field: string, fallback?: number, max = MAX_SIZE): number {
    const value = this.getValue(field);
    if (value === undefined) return this.fallbackOrThrow(field, fallback, "a whole number from 1 on");
    if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max) return value;
    throw this.invalidFieldError(field, `a whole number from 1 to ${max}`);
  }

  /** As `size`, but null means that there is none; only an absent field takes the default. */
  optionalSize(field: string, fallback?: number): number | undefined {
    if (!this.has(field)) return fallback;
    return this.getValue(field) === undefined ? undefined : this.size(field);
  }

  /** Any whole number; null means that there is none, and only an absent field takes the default. */
  optionalInteger(field: string, fallback?: number): number | undefined {
    if (!this.has(field)) return fallback;
    const value = this.getValue(field);
    if (value === undefined || (typeof value === "number" && Number.isInteger(value))) return value;
    throw this.invalidFieldError(field, "a whole number or null");
  }

  /** A whole number from 0 on. */
  count(field: string, fallback: number): number {
    return this.getValue(field) === 0 ? 0 : this.size(field, fallback);
  }

  /** A number above 0; null counts as absent. */
  positive(field: string, fallback?: number): number {
    const value = this.getValue(field);
    if (value === undefined) return this.fallbackOrThrow(field, fallback, "a number above 0");
    if (typeof value === "number" && Number.isFinite(value) && value > 0) return value;
    throw this.invalidFieldError(field, "a number above 0");
  }

  /** A number above 0, or undefined where the field is absent or null. */
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

  /** A list of numbers, or undefined where the field is absent or null. */
  numbers(field: string): readonly number[] | undefined {
    const value = this.getValue(field);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === "number")) return value;
    throw this.invalidFieldError(field, "a list of numbers");
  }

  /** A list of strings, or undefined where the field is absent or null. */
  texts(field: string): readonly string[] | undefined {
    const value = this.getValue(field);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
    throw this.invalidFieldError(field, "a list of strings");
  }

  /** An object, or undefined where the field is absent or null. */
  object(field: string): HuggingFaceConfig | undefined {
    const value = this.getValue(field);
    if (value === undefined) return undefined;
    if (isJsonObject(value)) return new HuggingFaceConfig(value, this.path, this.qualifyName(field));
    throw this.invalidFieldError(field, "an object");
  }

  /** FILE_CORRUPT: the field holds something that no model of this kind has. */
  invalidFieldError(field: string, expected: string): LlamaGymError {
    const found = this.has(field) ? `is ${formatExcerpt(this.json[field])}` : "is missing";
    return new LlamaGymError(
      "FILE_CORRUPT",
      `"${this.qualifyName(field)}" in ${this.path} ${found}; expected ${expected}. Correct the file or download it again.`,
    );
  }

  /** MODEL_UNSUPPORTED: the field asks for something that this library does not compute. */
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
