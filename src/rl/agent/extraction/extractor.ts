import type { Extraction } from "../../rollout/extraction.js";

/**
 * A way of reading replies: what the reply says in this way, undefined where it says nothing in this way, and a failure where it
 * does but means no action.
 */
export type Extractor<Value> = (completion: string) => Extraction<Value> | undefined;
