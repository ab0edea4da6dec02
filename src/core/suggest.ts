/** Names less alike than this are no suggestion. */
const SIMILARITY_THRESHOLD = 0.6;

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

/** 1 - (edit distance / length of the longer), Levenshtein 1966. */
function computeSimilarity(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(substitution, row[j] + 1, next[j - 1] + 1);
    }
    row = next;
  }
  return 1 - row[b.length] / Math.max(a.length, b.length, 1);
}
