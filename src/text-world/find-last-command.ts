const ARTICLES = /\b(?:the|a|an)\s+/g;

/**
 * Finds the last command in a text, ignoring case and articles; of two that end at the same
 * position, the longer one ("take key from table" does not name "take key").
 */
export function findLastCommand(text: string, commands: readonly string[]): string | undefined {
  const normalizedText = normalizeWords(text);
  let best: { command: string; start: number; end: number } | undefined;
  for (const command of commands) {
    const phrase = ` ${normalizeWords(command).trim()} `;
    const start = normalizedText.lastIndexOf(phrase);
    if (start < 0) continue;
    const end = start + phrase.length;
    // A command within a longer one does not count.
    const isWithin = best !== undefined && start >= best.start && end <= best.end;
    const surrounds = best !== undefined && start <= best.start && end >= best.end;
    if (best === undefined || surrounds || (!isWithin && end > best.end)) best = { command, start, end };
  }
  return best?.command;
}

/** Normalizes to lower-case words with one space around each. */
function normalizeWords(text: string): string {
  return ` ${text
    .toLowerCase()
    .replace(/[^a-z0-9'-]+/g, " ")
    .replace(ARTICLES, "")
    .trim()} `;
}
