/**
 * An object of the world with its declared type, or a rule's placeholder for one, such as `r'` of
 * type `r`.
 */
export interface Variable {
  readonly name: string;
  readonly type: string;
}

/** A predicate applied to objects or placeholders, such as `in(k_0: k, c_0: c)`. */
export class Proposition {
  /** Predicate and types, `in(k,c)`: facts are looked up by it. */
  readonly signature: string;
  /** Equal for equal propositions. */
  readonly key: string;
  readonly variableKeys: readonly string[];

  constructor(
    readonly name: string,
    readonly variables: readonly Variable[],
  ) {
    this.signature = formatSignature(name, getTypes(variables));
    this.variableKeys = variables.map(formatVariableKey);
    this.key = formatSignature(name, this.variableKeys);
  }

  /** Formats in TextWorld's notation, without a type that equals the name. */
  toString(): string {
    const names = this.variables.map(({ name, type }) => (name === type ? name : `${name}: ${type}`));
    return `${this.name}(${names.join(", ")})`;
  }
}

export function getTypes(variables: readonly Variable[]): string[] {
  return variables.map(({ type }) => type);
}

/** Formats the key under which facts of a predicate with these types are looked up. */
export function formatSignature(name: string, types: readonly string[]): string {
  return `${name}(${types.join(",")})`;
}

/** Variables are identified by name and type. */
export function formatVariableKey({ name, type }: Variable): string {
  return `${name}:${type}`;
}

/** Lists the variables of propositions in order of first mention. */
export function collectVariables(propositions: readonly Proposition[]): Variable[] {
  const variables = propositions.flatMap((proposition) => proposition.variables);
  return [...new Map(variables.map((variable) => [formatVariableKey(variable), variable])).values()];
}

/** Orders strings by UTF-16 unit, which equals Python's order outside the astral planes. */
export function compareStrings(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Orders lists of variables by the variables' names, then types, first variable first. */
export function compareVariables(a: readonly Variable[], b: readonly Variable[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = compareStrings(a[i].name, b[i].name) || compareStrings(a[i].type, b[i].type);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Fills `{name}` fields of a command or event template; `{{` and `}}` are literal braces. */
export function fillTemplate(template: string, getValue: (field: string) => string): string {
  return template.replace(/\{\{|\}\}|\{([^{}]*)\}/g, (match, field: string | undefined) =>
    field === undefined ? match[0] : getValue(field),
  );
}
