const LOST_VALUE = /\[object [A-Z]\w*\]|\b(?:undefined|NaN)\b/;

/**
 * Describes what a text lost where an object or a missing value was written into it; undefined for
 * a text that reads well.
 */
export function describeLostValue(text: string): string | undefined {
  const [value] = LOST_VALUE.exec(text) ?? [];
  if (value === undefined) return undefined;
  const cause = value.startsWith("[")
    ? value === "[object Promise]"
      ? "a promise was not awaited"
      : "write the fields of the object, or JSON.stringify it"
    : "a field is missing or misspelled, unless the word is meant";
  return `a text with "${value}": ${cause}`;
}
