const SURROUNDING = "\\s\"'`“”‘’«»*_~#>(){}[\\]<,:;!?";

const LEADING = new RegExp(`^(?:[${SURROUNDING}]|[-.](?!\\d))+`);
const TRAILING = new RegExp(`[${SURROUNDING}.-]+$`);

/**
 * Removes surrounding quotes, brackets, Markdown marks and punctuation, and collapses white space.
 */
export function stripPunctuation(text: string): string {
  return text.replace(/\s+/g, " ").replace(LEADING, "").replace(TRAILING, "");
}

/** Escapes a text for use in a regular expression. */
export function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
