/**
 * Sorts like Python's list.sort for fewer than 64 items: an initial run, then binary insertion. For
 * an inconsistent order (a before b, b before a) the result depends on which pairs are compared, so
 * only the same algorithm gives the same list.
 */
export function insertionSort<T>(items: readonly T[], isLess: (a: T, b: T) => boolean): T[] {
  const sorted = [...items];
  if (sorted.length < 2) return sorted;
  for (let i = countLeadingRun(sorted, isLess); i < sorted.length; i++) {
    const item = sorted[i];
    let left = 0;
    let right = i;
    while (left < right) {
      const middle = (left + right) >> 1;
      if (isLess(item, sorted[middle])) right = middle;
      else left = middle + 1;
    }
    sorted.copyWithin(left + 1, left, i);
    sorted[left] = item;
  }
  return sorted;
}

/** Returns the length of the initial run, after reversing a strictly descending one. */
function countLeadingRun<T>(items: T[], isLess: (a: T, b: T) => boolean): number {
  const descending = isLess(items[1], items[0]);
  let length = 2;
  while (length < items.length && isLess(items[length], items[length - 1]) === descending) length++;
  if (descending) items.splice(0, length, ...items.slice(0, length).reverse());
  return length;
}
