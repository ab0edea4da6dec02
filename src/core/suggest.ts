/** Names less alike than this are no suggestion. */
const SIMILARITY_THRESHOLD = 0.6;

/** Most edits between a misspelled name and the one that is meant. */
const MAX_TYPOS = 3;

/** The name that `name` is a misspelling of, ignoring case; undefined when there is none. */
export function findMisspelledName(name: string, names: Iterable<string>): string | undefined {
  const nearest = findNearestName(name, names);
  const isTypo = nearest !== undefined && editDistance(name.toLowerCase(), nearest.toLowerCase()) <= MAX_TYPOS;
  return isTypo ? nearest : undefined;
}

/** The name most like `name`, ignoring case; undefined when none is. */
export function findNearestName(name: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestSimilarity = SIMILARITY_THRESHOLD;
  for (const candidate of names) {
    const similarity = computeSimilarity(name.toLowerCase(), candidate.toLowerCase());
    if (similarity >= bestSimilarity && (best === undefined || similarity > bestSimilarity)) {
      best = candidate;
      bestSimilarity = similarity;
    }
  }
  return best;
}

/**
 * What a message about an unknown name ends with: the nearest known one, or all of them and what
 * else is worth knowing.
 */
export function suggestNames(name: string, names: readonly string[], suffix = ""): string {
  const nearest = findNearestName(name, names);
  return nearest === undefined ? `Known: ${names.join(", ")}${suffix}.` : `Did you mean ${nearest}?`;
}

/** 1 - (edit distance / length of the longer). */
function computeSimilarity(a: string, b: string): number {
  return 1 - editDistance(a, b) / Math.max(a.length, b.length, 1);
}

/** Number of characters to insert, remove or replace, Levenshtein 1966. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(substitution, row[j] + 1, next[j - 1] + 1);
    }
    row = next;
  }
  return row[b.length];
}
