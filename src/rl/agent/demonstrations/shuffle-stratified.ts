import type { RandomStream } from "../../../core/random/random-stream.js";

/**
 * The numbers of items in a random order in which each kind is spread evenly: any stretch holds the kinds about in their shares,
 * so that a batch of demonstrations shows all actions. [items]
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
