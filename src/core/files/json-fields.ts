import { type JsonObject, type JsonValue, isJsonObject } from "../json.js";
import { LlamaGymError } from "../errors.js";
import { formatJson } from "./json-file.js";

/**
 * Larger than any model dimension; prevents corrupt files from requesting absurd amounts of memory.
 */
const MAX_SIZE = 2 ** 31 - 1;

/**
 * Typed access to the fields of a JSON file (config.json, adapter_config.json) or of an object in
 * it. Absent fields and null take the caller's fallback; the optional readers let null mean none,
 * so that only an absent field takes the fallback.
 */
export class JsonFields {
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

  /** Reads an integer in [1, max]; required without a fallback. */
  size(field: string, fallback?: number, max = MAX_SIZE): number {
    const accepts = (value: JsonValue): value is number => isInteger(value) && value >= 1 && value <= max;
    const expected = `an integer from 1 to ${max}`;
    return this.require(field, this.read(field, accepts, expected) ?? fallback, expected);
  }

  /** Reads an integer >= 1. */
  optionalSize(field: string, fallback?: number): number | undefined {
    if (!this.has(field)) return fallback;
    return this.getValue(field) === undefined ? undefined : this.size(field);
  }

  optionalInteger(field: string, fallback?: number): number | undefined {
    return this.has(field) ? this.read(field, isInteger, "an integer or null") : fallback;
  }

  /** Reads an integer >= 0. */
  count(field: string, fallback: number): number {
    return this.getValue(field) === 0 ? 0 : this.size(field, fallback);
  }

  /** Reads a number that `accepts` returns true for. */
  number(field: string, fallback: number, accepts: (value: number) => boolean, expected: string): number {
    return this.read(field, (value): value is number => isFinite(value) && accepts(value), expected) ?? fallback;
  }

  /** Reads a number > 0; required without a fallback. */
  positive(field: string, fallback?: number): number {
    return this.require(field, this.optionalPositive(field) ?? fallback, "a number > 0");
  }

  /** Reads a number > 0, or undefined where absent or null. */
  optionalPositive(field: string): number | undefined {
    // Graphs hold these as float32.
    const accepts = (value: JsonValue): value is number => isFinite(value) && Math.fround(value) > 0;
    return this.read(field, accepts, "a number > 0");
  }

  flag(field: string, fallback: boolean): boolean {
    return this.read(field, (value) => typeof value === "boolean", "true or false") ?? fallback;
  }

  text(field: string): string | undefined {
    return this.read(field, (value) => typeof value === "string", "a string");
  }

  numbers(field: string): readonly number[] | undefined {
    return this.read(field, (value) => Array.isArray(value) && value.every(isFinite), "a list of numbers");
  }

  texts(field: string): readonly string[] | undefined {
    const isTexts = (value: JsonValue) => Array.isArray(value) && value.every((item) => typeof item === "string");
    return this.read(field, isTexts, "a list of strings");
  }

  /** Reads an object of numbers; empty where absent. */
  numberMap(field: string): Readonly<Record<string, number>> {
    const isMap = (value: JsonValue): value is Record<string, number> =>
      isJsonObject(value) && Object.values(value).every(isFinite);
    return this.read(field, isMap, "an object of numbers") ?? {};
  }

  object(field: string): JsonFields | undefined {
    const value = this.read(field, isJsonObject, "an object");
    return value && new JsonFields(value, this.path, this.qualifyName(field));
  }

  /** Creates FILE_CORRUPT for an invalid field. */
  invalidFieldError(field: string, expected: string): LlamaGymError {
    return new LlamaGymError(
      "FILE_CORRUPT",
      `${this.describe(field)}; expected ${expected}. Correct the file or download it again.`,
    );
  }

  /** Creates MODEL_UNSUPPORTED for an unsupported field value, or a missing field. */
  unsupportedFieldError(field: string, supported: string): LlamaGymError {
    return new LlamaGymError("MODEL_UNSUPPORTED", `${this.describe(field)}, which is not supported. ${supported}`);
  }

  private describe(field: string): string {
    const found = this.has(field) ? `is ${formatJson(this.json[field])}` : "is missing";
    return `"${this.qualifyName(field)}" in ${this.path} ${found}`;
  }

  private getValue(field: string): JsonValue | undefined {
    return this.has(field) ? (this.json[field] ?? undefined) : undefined;
  }

  private read<Value extends JsonValue>(
    field: string,
    accepts: (value: JsonValue) => value is Value,
    expected: string,
  ): Value | undefined {
    const value = this.getValue(field);
    if (value === undefined || accepts(value)) return value;
    throw this.invalidFieldError(field, expected);
  }

  private require(field: string, value: number | undefined, expected: string): number {
    if (value === undefined) throw this.invalidFieldError(field, expected);
    return value;
  }

  private qualifyName(field: string): string {
    return this.parentField === undefined ? field : `${this.parentField}.${field}`;
  }
}

/** Whether a value is a number that is finite as float32. */
function isFinite(value: JsonValue): value is number {
  return typeof value === "number" && Number.isFinite(Math.fround(value));
}

function isInteger(value: JsonValue): value is number {
  return typeof value === "number" && Number.isInteger(value);
}
