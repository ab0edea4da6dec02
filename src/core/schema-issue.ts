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

/** Where a value is wrong, such as `messages[2].content`, "" for the whole of it, and what is wrong with it. */
export interface FoundIssue {
  readonly path: string;
  readonly message: string;
}

/**
 * Returns the first fault of a value. In a union it is the fault of the option that the value comes closest to, since zod says no
 * more than "Invalid input" of the whole.
 */
export function findIssue(issues: readonly SchemaIssue[]): FoundIssue {
  const { path, message } = resolveUnion(issues[0]);
  return { path: formatPath(path), message: message.replace(/^Invalid input: /, "").replace(/\.$/, "") };
}

/** Describes the first fault of a value in one line: "messages[2].content: expected string, received number". */
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
  const isOfOtherType = (each: SchemaIssue) => each.path.length === 0 && each.code === "invalid_type";
  const isOfOtherValue = (each: SchemaIssue) => each.code === "invalid_value" && each.path.length < 2;
  const options = errors.filter((option) => !option.some(isOfOtherType));
  if (options.length === 0)
    return expectOneOf(
      issue,
      errors.flatMap((option) => option.map(({ expected }) => expected!)),
    );
  // What distinguishes the options of a union are constants, such as a type.
  const [closest] = options.filter((option) => !option.some(isOfOtherValue));
  if (closest !== undefined) {
    const inner = resolveUnion(closest[0]);
    return { ...inner, path: [...path, ...inner.path] };
  }
  const constants = options.flatMap((option) => option.filter(isOfOtherValue));
  const { path: where } = constants[0];
  const values = constants.filter((each) => each.path.join() === where.join()).flatMap((each) => each.values ?? []);
  return expectOneOf(
    { ...issue, path: [...path, ...where] },
    values.map((value) => JSON.stringify(value)),
  );
}

function expectOneOf({ path }: SchemaIssue, options: readonly string[]): SchemaIssue {
  return { path, message: `expected ${Array.from(new Set(options)).join(" or ")}` };
}

function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, part) => text + (typeof part === "number" ? `[${part}]` : text === "" ? String(part) : `.${String(part)}`),
    "",
  );
}
