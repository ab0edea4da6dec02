import type { RandomStream } from "../../tensor/random.js";

/**
 * The numbers of items in a random order in which each kind is spread evenly: any stretch holds the kinds about in their shares,
 * so that a batch of demonstrations shows all actions. [items]
 */
export function stratifiedOrder(kinds: readonly string[], random: RandomStream): number[] {
  const byKind = new Map<string, number[]>();
  kinds.forEach((kind, i) => {
    const group = byKind.get(kind);
    if (group === undefined) byKind.set(kind, [i]);
    else group.push(i);
  });
  const placed: { readonly item: number; readonly place: number }[] = [];
  for (const group of byKind.values()) {
    const start = random.random();
    random.permutation(group.length).forEach((number, i) => {
      placed.push({ item: group[number], place: (i + start) / group.length });
    });
  }
  return placed.sort((a, b) => a.place - b.place).map(({ item }) => item);
}
