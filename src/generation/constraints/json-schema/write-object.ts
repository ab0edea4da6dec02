import { type RegexExpression, NO_MATCH, alternatives, literal, sequence } from "../regex/expression.js";
import { TextAutomaton } from "../regex/text-automaton.js";
import { without } from "../regex/parse-pattern.js";
import { schemaError } from "./keywords.js";
import { allowsName, isOpen, listedNames, memberTerms, namedMemberTerms } from "./object-members.js";
import type { Term } from "./schema-document.js";
import type { ValueShape } from "./value-shape.js";
import type { ValueWriter } from "./value-writer.js";
import { NON_EMPTY_TEXTS, ofTexts } from "./string-language.js";

/** Maximum number of sets of patterns that a name may match. */
const MAX_NAME_GROUPS = 100;

/**
 * Returns the expression of a shape's objects: listed members in order, then others in any order.
 */
export function writeObject(writer: ValueWriter, shape: ValueShape, path: string): RegexExpression {
  const { evaluator, languages } = writer;
  const given = nameValues(writer, shape);
  const listed = listedNames(shape);
  if (isOpen(shape)) for (const name of given ?? []) listed.add(name);
  const required = new Set(shape.required);
  if (shape.required.some((name) => !allowsName(shape, name, evaluator))) return NO_MATCH;
  const items = [...listed]
    .filter((name) => allowsName(shape, name, evaluator))
    .map((name) => ({
      body: sequence([literal(`${JSON.stringify(name)}: `), writer.value(namedMemberTerms(shape, name, languages))]),
      isRequired: required.has(name),
    }));
  const rest = isOpen(shape) && given === undefined ? writeOthers(writer, shape, listed, path) : NO_MATCH;
  const { minProperties: min, maxProperties: max } = shape;
  if (rest !== NO_MATCH && min > 1) checkMin(min, max, items.length, required.size, path);
  if (min > max) return NO_MATCH;
  return sequence([literal("{"), { kind: "list", items, rest, min, max }, literal("}")]);
}

/** The names of other members may repeat, so they count as one. */
function checkMin(min: number, max: number, listed: number, required: number, path: string): void {
  const isCounted = max === Infinity ? min <= listed + 1 : min <= required + 1;
  if (isCounted) return;
  throw schemaError(
    path,
    `"minProperties" of ${min} is not supported, because names that are not listed may repeat; list them in "properties"`,
  );
}

/** Returns the names that "propertyNames" lists, if it does. */
function nameValues({ expander }: ValueWriter, { names }: ValueShape): string[] | undefined {
  const lists = names
    .map((term) => expander.expand([term]))
    .find((shapes) => shapes.every(({ values }) => values !== undefined));
  return lists?.flatMap(({ values }) => values!.filter((value) => typeof value === "string"));
}

/** Returns the expression of one member whose name is not listed. */
function writeOthers(
  writer: ValueWriter,
  shape: ValueShape,
  listed: ReadonlySet<string>,
  path: string,
): RegexExpression {
  const { languages, strings, expander } = writer;
  const sources = new Set(shape.memberParts.flatMap(({ patterns }) => patterns.map(({ source }) => source)));
  const unlisted = [...new Set([...listed, ...shape.forbidden])];
  let groups = nameLanguages(writer, shape).map((names) => ({
    names: languages.without(names, unlisted),
    matching: new Set<string>(),
  }));
  for (const source of sources) {
    const automaton = languages.pattern(source, path);
    groups = groups
      .flatMap(({ names, matching }) => [
        { names: names.and(automaton), matching: new Set([...matching, source]) },
        { names: without(names, automaton), matching },
      ])
      .filter(({ names }) => !names.isEmpty);
    if (groups.length > MAX_NAME_GROUPS)
      throw schemaError(path, `"patternProperties" has patterns with more than ${MAX_NAME_GROUPS} intersections`);
  }
  const options = groups.flatMap(({ names, matching }) => {
    const terms = memberTerms(shape, (source) => matching.has(source), undefined);
    if (names.isEmpty || terms.some(isNever) || expander.expand(terms).length === 0) return [];
    return [sequence([strings.withContent(names), literal(": "), writer.value(terms)])];
  });
  return alternatives(options);
}

function isNever({ schema, isNegated }: Term): boolean {
  return schema === isNegated;
}

/**
 * Returns the names that "propertyNames" allows, as the union of automata; by default all but the
 * empty one.
 */
function nameLanguages({ expander, languages }: ValueWriter, { names, memberParts }: ValueShape): TextAutomaton[] {
  if (names.length > 0)
    return expander.shapes(names).flatMap((shape) => {
      if (shape.values !== undefined) return [ofTexts(shape.values.filter((value) => typeof value === "string"))];
      return (shape.types & 1) === 0
        ? []
        : [languages.ofShape(shape) ?? TextAutomaton.any().withLength(shape.minLength, shape.maxLength)];
    });
  return [memberParts.some(({ patterns }) => patterns.length > 0) ? TextAutomaton.any() : NON_EMPTY_TEXTS];
}
