import type { RandomStream } from "../../../core/random/random-stream.js";

/**
 * Returns the item indices in a random order in which each kind is spread evenly: any run of items has about the overall
 * proportions, so that every batch contains all actions.
 */
export function shuffleStratified(kinds: readonly string[], random: RandomStream): number[] {
  const byKind = new Map<string, number[]>();
  kinds.forEach((kind, i) => {
    const group = byKind.get(kind);
    if (group === undefined) byKind.set(kind, [i]);
    else group.push(i);
  });
  const positioned: { readonly item: number; readonly position: number }[] = [];
  for (const group of byKind.values()) {
    const start = random.random();
    random.permutation(group.length).forEach((index, i) => {
      positioned.push({ item: group[index], position: (i + start) / group.length });
    });
  }
  return positioned.sort((a, b) => a.position - b.position).map(({ item }) => item);
}
