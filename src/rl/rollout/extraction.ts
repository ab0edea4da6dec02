/**
 * How an action was extracted: by the environment's parser, a built-in extractor or the agent's own
 * function.
 */
export const EXTRACTION_KINDS = [
  "parser",
  "json",
  "tag",
  "regex",
  "choice",
  "mention",
  "number",
  "nearest",
  "function",
] as const;
/** How an action was found in a completion. */
export type ExtractionKind = (typeof EXTRACTION_KINDS)[number];

/** A value extracted from a completion. */
export interface ExtractedValue<Value> {
  readonly kind: ExtractionKind;
  readonly value: Value;
}

/** The reason why a completion contains no action. */
export interface ExtractionFailure {
  readonly kind: "failure";
  readonly value: undefined;
  /** A sentence for logs and messages. */
  readonly reason: string;
}

/** Extracted action, or the reason why there is none. */
export type Extraction<Value> = ExtractedValue<Value> | ExtractionFailure;

/** Distinguishes an extraction from an action that has the same fields. */
const WHOLE_COMPLETION = Symbol("whole completion");

export function extractionFailure(reason: string): ExtractionFailure {
  return { kind: "failure", value: undefined, reason };
}

/** Marks an extraction, so that an agent's extractAction may return it in place of the action. */
export function fromWholeCompletion<Value>(extraction: Extraction<Value>): Extraction<Value> {
  return Object.defineProperty({ ...extraction }, WHOLE_COMPLETION, { value: true });
}

/**
 * Converts the result of an agent's extractAction to an extraction; a bare action has the kind
 * "function".
 */
export function toExtraction<Action>(result: Action | Extraction<Action> | undefined): Extraction<Action> {
  if (result === undefined) return extractionFailure("");
  const isWhole = typeof result === "object" && result !== null && WHOLE_COMPLETION in result;
  return isWhole ? (result as Extraction<Action>) : { kind: "function", value: result as Action };
}
