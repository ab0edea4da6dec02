import { type Extraction, extractionFailure, fromWholeCompletion } from "../../rollout/extraction.js";
import type { Extractor } from "./extractor.js";
import { stripReasoning } from "./strip-reasoning.js";

/**
 * The action that a reply means, by the first strategy that finds one, or why there is none. Reasoning in <think> and the like is
 * left out first, and so is what a model writes for the other side. A strategy that fails ends the search: what the reply says
 * outright counts, right or wrong. An agent's extractAction may give what this gives: a run then counts how actions were found.
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
  return extractionFailure("The reply names no action.");
}

/**
 * Reads with `inner` what `outer` finds; the kind stays that of `outer`. Where `inner` makes nothing of it, that is a failure:
 * { "action": "fly" } is no action where one can only walk, whatever else the reply speaks of.
 */
export function refine<Value>(outer: Extractor<unknown>, inner: Extractor<Value>): Extractor<Value> {
  return (completion) => {
    const found = outer(completion);
    if (found === undefined || found.kind === "failure") return found;
    const text = typeof found.value === "string" ? found.value : JSON.stringify(found.value);
    const refined = inner(text);
    if (refined !== undefined && refined.kind !== "failure") return { kind: found.kind, value: refined.value };
    return extractionFailure(`The reply says ${JSON.stringify(text)} (${found.kind}), which is no action.`);
  };
}

/** The first of several ways that finds something. */
export function firstMatch<Value>(...extractors: readonly Extractor<Value>[]): Extractor<Value> {
  return (completion) => {
    for (const extractor of extractors) {
      const found = extractor(completion);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

/** Your own way: a function that gives a value, or undefined where the reply has none. */
export function fromFunction<Value>(parse: (completion: string) => Value | undefined): Extractor<Value> {
  return (completion) => {
    const value = parse(completion);
    return value === undefined ? undefined : { kind: "function", value };
  };
}
