import { type Extraction, failure, ofWholeReply } from "../../rollout/extraction.js";
import type { Extractor } from "./extractor.js";
import { readableReply } from "./readable.js";

/**
 * The action that a reply means, by the first strategy that finds one, or why there is none. Reasoning in <think> and the like is
 * left out first, and so is what a model writes for the other side. A strategy that fails ends the search: what the reply says
 * outright counts, right or wrong. An agent's extractAction may give what this gives: a run then counts how actions were found.
 */
export function extractAction<Value>(reply: string, strategies: readonly Extractor<Value>[]): Extraction<Value> {
  const text = readableReply(reply);
  return ofWholeReply(typeof text === "string" ? firstFound(text, strategies) : text);
}

function firstFound<Value>(text: string, strategies: readonly Extractor<Value>[]): Extraction<Value> {
  for (const strategy of strategies) {
    const found = strategy(text);
    if (found !== undefined) return found;
  }
  return failure("The reply names no action.");
}

/**
 * Reads with `inner` what `outer` finds; the kind stays that of `outer`. Where `inner` makes nothing of it, that is a failure:
 * { "action": "fly" } is no action where one can only walk, whatever else the reply speaks of.
 */
export function within<Value>(outer: Extractor<unknown>, inner: Extractor<Value>): Extractor<Value> {
  return (reply) => {
    const found = outer(reply);
    if (found === undefined || found.kind === "failure") return found;
    const text = typeof found.value === "string" ? found.value : JSON.stringify(found.value);
    const read = inner(text);
    if (read !== undefined && read.kind !== "failure") return { kind: found.kind, value: read.value };
    return failure(`The reply says ${JSON.stringify(text)} (${found.kind}), which is no action.`);
  };
}

/** The first of several ways that finds something. */
export function either<Value>(...ways: readonly Extractor<Value>[]): Extractor<Value> {
  return (reply) => {
    for (const way of ways) {
      const found = way(reply);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

/** Your own way: a function that gives a value, or undefined where the reply has none. */
export function byFunction<Value>(read: (reply: string) => Value | undefined): Extractor<Value> {
  return (reply) => {
    const value = read(reply);
    return value === undefined ? undefined : { kind: "function", value };
  };
}
