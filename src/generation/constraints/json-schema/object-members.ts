import type { Term } from "./schema-document.js";
import type { ValueShape } from "./value-shape.js";
import type { SchemaEvaluator } from "./evaluate-schema.js";
import type { StringLanguages } from "./string-language.js";

/**
 * Returns whether members of other names than the listed ones are written: of an object without
 * "properties", or one with "additionalProperties" or "patternProperties".
 */
export function isOpen({ memberParts }: ValueShape): boolean {
  return (
    memberParts.every(({ isList }) => !isList) ||
    memberParts.some(({ additional, patterns }) => additional !== undefined || patterns.length > 0)
  );
}

/** Returns the terms of a member's value, given the patterns that match its name. */
export function memberTerms(
  { memberParts }: ValueShape,
  matches: (source: string) => boolean,
  name: string | undefined,
): Term[] {
  return memberParts.flatMap(({ properties, patterns, additional }) => {
    const terms = patterns.filter(({ source }) => matches(source)).map(({ value }) => value);
    const own = name === undefined ? undefined : properties.get(name);
    if (own !== undefined) terms.unshift(own);
    return terms.length === 0 && additional !== undefined ? [additional] : terms;
  });
}

/** Returns the terms of the value of a named member. */
export function namedMemberTerms(shape: ValueShape, name: string, languages: StringLanguages): Term[] {
  return memberTerms(shape, (source) => languages.pattern(source, "#").matches(name), name);
}

/** Lists the names of "properties" and "required", in their order. */
export function listedNames({ memberParts, required }: ValueShape): Set<string> {
  return new Set([...memberParts.flatMap(({ properties }) => [...properties.keys()]), ...required]);
}

/** Returns whether a shape allows a member of a name. */
export function allowsName({ forbidden, names }: ValueShape, name: string, evaluator: SchemaEvaluator): boolean {
  return !forbidden.includes(name) && evaluator.satisfiesAll(name, names);
}
