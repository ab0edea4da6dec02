import type { Extractor } from "./extractor.js";

/**
 * Finds the last match of a regular expression: the group named `action`, else the first group,
 * else the whole match.
 */
export function regexMatch(pattern: RegExp): Extractor<string> {
  const globalPattern = new RegExp(pattern.source, pattern.flags.includes("g") ? pattern.flags : `${pattern.flags}g`);
  return (completion) => {
    const found = [...completion.matchAll(globalPattern)].at(-1);
    const value = found?.groups?.action ?? found?.[1] ?? found?.[0];
    return value === undefined ? undefined : { kind: "regex", value };
  };
}
