import { isDeepStrictEqual } from "node:util";

/** A value that must equal a recorded one. */
export interface Comparison {
  readonly where: string;
  readonly actual: unknown;
  readonly expected: unknown;
}

/** Returns the first difference in words; undefined when there is none. */
export function findDifference(comparisons: Iterable<Comparison>): string | undefined {
  for (const { where, actual, expected } of comparisons)
    if (!isDeepStrictEqual(actual, expected))
      return `at ${where}: ${JSON.stringify(actual)}, recorded ${JSON.stringify(expected)}`;
  return undefined;
}
