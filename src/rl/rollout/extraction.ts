/** How an action was found: by the environment's own parser, in one of the forms that replies take, by a function of the agent's. */
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
export type ExtractionKind = (typeof EXTRACTION_KINDS)[number];

/** Something that a reply says, and how it says it. */
export interface ExtractedValue<Value> {
  readonly kind: ExtractionKind;
  readonly value: Value;
}

/** Why a reply means no action. */
export interface ExtractionFailure {
  readonly kind: "failure";
  readonly value: undefined;
  /** A sentence, for logs and for those who look at replies. */
  readonly reason: string;
}

export type Extraction<Value> = ExtractedValue<Value> | ExtractionFailure;

/** Tells what was found in a whole reply from an action that happens to look like it. */
const WHOLE_COMPLETION = Symbol("whole reply");

export function extractionFailure(reason: string): ExtractionFailure {
  return { kind: "failure", value: undefined, reason };
}

/** Marks what was found in a whole reply, as an agent's extractAction may give it in place of the action. */
export function fromWholeCompletion<Value>(extraction: Extraction<Value>): Extraction<Value> {
  return Object.defineProperty({ ...extraction }, WHOLE_COMPLETION, { value: true });
}

/** What an agent's extractAction gave, as an extraction: an action alone was found by the agent's own function. */
export function toExtraction<Action>(result: Action | Extraction<Action> | undefined): Extraction<Action> {
  if (result === undefined) return extractionFailure("");
  const isWhole = typeof result === "object" && result !== null && WHOLE_COMPLETION in result;
  return isWhole ? (result as Extraction<Action>) : { kind: "function", value: result as Action };
}
