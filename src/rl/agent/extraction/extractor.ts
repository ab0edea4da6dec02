import type { Extraction } from "../../rollout/extraction.js";

/**
 * Finds a value in a completion. Returns undefined if the completion has nothing in the format that
 * the extractor looks for, and a failure if it has but the content is not an action.
 */
export type Extractor<Value> = (completion: string) => Extraction<Value> | undefined;
