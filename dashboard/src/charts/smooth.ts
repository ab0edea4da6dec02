/**
 * Smooths values by an exponential moving average, corrected for its start (Adam's correction): the
 * mean of the values so far, weighted by `weight` to the power of their age. Null where a value is.
 */
export function smooth(values: readonly (number | null)[], weight: number): (number | null)[] {
  let mean = 0;
  let total = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return mean / total;
  });
}
