// Python counts characters, JavaScript UTF-16 units; they are the same for text without surrogates.

const surrogate = /[\ud800-\udfff]/;

/** Returns a text's characters, as the text itself where each has one unit. */
export function toCharacters(text: string): string | readonly string[] {
  return surrogate.test(text) ? Array.from(text) : text;
}

export function countCharacters(text: string): number {
  return toCharacters(text).length;
}

/** Returns the characters [start, end) of a text. */
export function sliceCharacters(text: string, start: number, end?: number): string {
  const characters = toCharacters(text);
  return typeof characters === "string" ? characters.slice(start, end) : characters.slice(start, end).join("");
}

/** Compares texts by their characters: negative, zero or positive. */
export function compareText(left: string, right: string): number {
  if (left === right) return 0;
  if (!surrogate.test(left) && !surrogate.test(right)) return left < right ? -1 : 1;
  const [a, b] = [Array.from(left), Array.from(right)];
  for (let i = 0; i < Math.min(a.length, b.length); i++)
    if (a[i] !== b[i]) return (a[i].codePointAt(0) ?? 0) - (b[i].codePointAt(0) ?? 0);
  return a.length - b.length;
}
