/** How an action was found. */
export const extractionKinds = ["json", "tag", "regex", "choice", "mention", "number", "nearest", "function"] as const;
export type ExtractionKind = (typeof extractionKinds)[number];

/** Something that a reply says, and how it says it. */
export interface Extracted<Value> {
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

export type Extraction<Value> = Extracted<Value> | ExtractionFailure;

/**
 * A way of reading replies: what the reply says in this way, undefined where it says nothing in this way, and a failure where it
 * does but means no action.
 */
export type Extractor<Value> = (reply: string) => Extraction<Value> | undefined;

export function failure(reason: string): ExtractionFailure {
  return { kind: "failure", value: undefined, reason };
}
