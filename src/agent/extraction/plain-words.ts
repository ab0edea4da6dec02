const AROUND = "\\s\"'`“”‘’«»*_~#>(){}[\\]<,:;!?";

const BEFORE = new RegExp(`^(?:[${AROUND}]|[-.](?!\\d))+`);
const BEHIND = new RegExp(`[${AROUND}.-]+$`);

/** A text without the quotes, brackets, marks of Markdown and punctuation around it, with single spaces. */
export function plainWords(text: string): string {
  return text.replace(/\s+/g, " ").replace(BEFORE, "").replace(BEHIND, "");
}

/** A text as a regular expression that matches it. */
export function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
