import { type Extraction, extractionFailure, fromWholeCompletion } from "../../rollout/extraction.js";
import type { Extractor } from "./extractor.js";
import { stripReasoning } from "./strip-reasoning.js";

/**
 * Extracts the action from a completion with the first extractor that returns a result. Reasoning
 * blocks and text written for the other speaker are removed first. A failure ends the search: an
 * explicit but invalid answer is not reinterpreted. An agent's `extractAction` may return the
 * result as it is; the run then logs how actions were found.
 */
export function extractAction<Value>(completion: string, extractors: readonly Extractor<Value>[]): Extraction<Value> {
  const text = stripReasoning(completion);
  return fromWholeCompletion(typeof text === "string" ? runExtractors(text, extractors) : text);
}

function runExtractors<Value>(text: string, extractors: readonly Extractor<Value>[]): Extraction<Value> {
  for (const extractor of extractors) {
    const found = extractor(text);
    if (found !== undefined) return found;
  }
  return extractionFailure("The completion names no action.");
}

/**
 * Applies `inner` to the text that `outer` finds and keeps the kind of `outer`. If `inner` finds
 * nothing, the result is a failure: `{ "action": "fly" }` is invalid if "fly" is not an action,
 * whatever else the completion mentions.
 */
export function refine<Value>(outer: Extractor<unknown>, inner: Extractor<Value>): Extractor<Value> {
  return (completion) => {
    const found = outer(completion);
    if (found === undefined || found.kind === "failure") return found;
    const text = typeof found.value === "string" ? found.value : JSON.stringify(found.value);
    const refined = inner(text);
    if (refined !== undefined && refined.kind !== "failure") return { kind: found.kind, value: refined.value };
    return extractionFailure(`The completion says ${JSON.stringify(text)} (${found.kind}), which is not an action.`);
  };
}

/** Combines extractors: the first result counts. */
export function firstMatch<Value>(...extractors: readonly Extractor<Value>[]): Extractor<Value> {
  return (completion) => {
    for (const extractor of extractors) {
      const found = extractor(completion);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

/** Makes an extractor from a function that returns a value or undefined. */
export function fromFunction<Value>(parse: (completion: string) => Value | undefined): Extractor<Value> {
  return (completion) => {
    const value = parse(completion);
    return value === undefined ? undefined : { kind: "function", value };
  };
}
