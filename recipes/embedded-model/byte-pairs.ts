/** Pairs of neighboring symbols and the words that came of them. */
export interface BytePairs {
  /** Merges in the order in which they were found. */
  readonly merges: readonly (readonly [string, string])[];
  /** What the merges make, in the same order. */
  readonly symbols: readonly string[];
}

interface Word {
  symbols: string[];
  readonly count: number;
}

/**
 * Byte-pair encoding (Sennrich et al. 2016): merges the most frequent pair of neighboring symbols,
 * again and again. Of equally frequent pairs the first in the order of their characters is taken,
 * so that the result is always the same.
 * @param counts how often each word occurs, words spelled in the alphabet's characters
 */
export function trainBytePairs(counts: ReadonlyMap<string, number>, mergeCount: number): BytePairs {
  const words: Word[] = [...counts].map(([word, count]) => ({ symbols: Array.from(word), count }));
  const merges: (readonly [string, string])[] = [];
  while (merges.length < mergeCount) {
    const pair = mostFrequentPair(words);
    if (pair === undefined) break;
    merges.push(pair);
    for (const word of words) word.symbols = mergePair(word.symbols, pair);
  }
  return { merges, symbols: merges.map((pair) => pair.join("")) };
}

function mostFrequentPair(words: readonly Word[]): readonly [string, string] | undefined {
  const counts = new Map<string, number>();
  for (const { symbols, count } of words) {
    for (let i = 1; i < symbols.length; i++) {
      const pair = `${symbols[i - 1]} ${symbols[i]}`;
      counts.set(pair, (counts.get(pair) ?? 0) + count);
    }
  }
  let best: string | undefined;
  for (const [pair, count] of counts) {
    const bestCount = best === undefined ? 1 : counts.get(best)!;
    if (count > bestCount || (count === bestCount && best !== undefined && pair < best)) best = pair;
  }
  return best === undefined ? undefined : (best.split(" ") as [string, string]);
}

/** The symbols with every occurrence of the pair joined, from left to right. */
export function mergePair(symbols: readonly string[], [left, right]: readonly [string, string]): string[] {
  const result: string[] = [];
  for (const symbol of symbols) {
    if (symbol === right && result.at(-1) === left && result.length > 0) result[result.length - 1] = left + right;
    else result.push(symbol);
  }
  return result;
}
