/**
 * Returns a function that gives equal sequences of integers equal keys. The key of an array is
 * computed once, so the array must not change afterwards.
 */
export function sequenceKeys(): (sequence: readonly number[]) => string {
  const keys = new WeakMap<readonly number[], string>();
  return (sequence) => {
    let key = keys.get(sequence);
    if (key === undefined) keys.set(sequence, (key = sequence.join()));
    return key;
  };
}
