const SURROUNDING = "\\s\"'`“”‘’«»*_~#>(){}[\\]<,:;!?";

const LEADING = new RegExp(`^(?:[${SURROUNDING}]|[-.](?!\\d))+`);
const TRAILING = new RegExp(`[${SURROUNDING}.-]+$`);

/** A text without the quotes, brackets, marks of Markdown and punctuation around it, with single spaces. */
export function stripPunctuation(text: string): string {
  return text.replace(/\s+/g, " ").replace(LEADING, "").replace(TRAILING, "");
}

/** A text as a regular expression that matches it. */
export function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
