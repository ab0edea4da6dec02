/** A fault that zod found in a value. */
export interface SchemaIssue {
  readonly code?: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly expected?: string;
  readonly values?: readonly unknown[];
  /** For a union, the faults that each of its options found. */
  readonly errors?: readonly (readonly SchemaIssue[])[];
}

/**
 * Where a value is wrong, such as `messages[2].content`, "" for the whole of it, and what is wrong
 * with it.
 */
export interface FoundIssue {
  readonly path: string;
  readonly message: string;
}

/**
 * Returns the first fault of a value. In a union it is the fault of the option that the value comes
 * closest to, since zod says no more than "Invalid input" of the whole.
 */
export function findIssue(issues: readonly SchemaIssue[]): FoundIssue {
  const { path, message } = resolveUnion(issues[0]);
  return { path: formatPath(path), message: message.replace(/^Invalid input: /, "").replace(/\.$/, "") };
}

/**
 * Describes the first fault of a value in one line: "messages[2].content: expected string, received
 * number".
 */
export function describeIssue(issues: readonly SchemaIssue[]): string {
  const { path, message } = findIssue(issues);
  return path === "" ? message : `${path}: ${message}`;
}

/** The issues of a zod error; undefined for every other error. */
export function issuesOf(error: unknown): readonly SchemaIssue[] | undefined {
  if (!(error instanceof Error) || error.name !== "ZodError") return undefined;
  return (error as Error & { readonly issues: readonly SchemaIssue[] }).issues;
}

function resolveUnion(issue: SchemaIssue): SchemaIssue {
  const { code, errors = [], path } = issue;
  if (code !== "invalid_union" || errors.length === 0) return issue;
  const isOfOtherKind = (each: SchemaIssue) =>
    each.path.length === 0 && (each.code === "invalid_type" || each.code === "invalid_value");
  const options = errors.filter((option) => !option.some(isOfOtherKind));
  if (options.length === 0) return expectOneOf(issue, errors.flat().flatMap(listExpected));
  // What distinguishes the options of a union are constants, such as a type.
  const constants = options.flat().filter((each) => each.code === "invalid_value" && each.path.length === 1);
  const byKey = Array.from(new Set(constants.map((each) => each.path[0])), (key) =>
    constants.filter((each) => each.path[0] === key),
  );
  const tagged = byKey.reduce<readonly SchemaIssue[]>((a, b) => (b.length > a.length ? b : a), []);
  const closest = options.filter((option) => !option.some((each) => tagged.includes(each)));
  if (closest.length === 0)
    return expectOneOf({ ...issue, path: [...path, ...tagged[0].path] }, tagged.flatMap(listExpected));
  const furthest = closest.map(([first]) => first).reduce((a, b) => (isFurther(b.path, a.path) ? b : a));
  const inner = resolveUnion(furthest);
  return { ...inner, path: [...path, ...inner.path] };
}

/** Whether a path is found later in a value than another one: in a later item, or deeper. */
function isFurther(path: readonly PropertyKey[], other: readonly PropertyKey[]): boolean {
  const at = path.findIndex((key, i) => key !== other[i]);
  if (at < 0 || at >= other.length) return path.length > other.length;
  const [key, otherKey] = [path[at], other[at]];
  return typeof key === "number" && typeof otherKey === "number" && key > otherKey;
}

/** Returns the types or constants that an issue expects. */
const listExpected = ({ expected, values }: SchemaIssue): string[] =>
  values?.map((value) => JSON.stringify(value)) ?? (expected === undefined ? [] : [expected]);

function expectOneOf({ path }: SchemaIssue, options: readonly string[]): SchemaIssue {
  return { path, message: `expected ${Array.from(new Set(options)).join(" or ")}` };
}

function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, part) => text + (typeof part === "number" ? `[${part}]` : text === "" ? String(part) : `.${String(part)}`),
    "",
  );
}
