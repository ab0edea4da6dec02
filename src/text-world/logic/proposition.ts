/** A thing of the world in the language of facts: an id and the type it was declared with. */
export interface Variable {
  readonly name: string;
  readonly type: string;
}

/** A statement that can be true of the world: a predicate applied to things, such as `in(k_0: k, c_0: c)`. */
export class Proposition {
  readonly name: string;
  readonly variables: readonly Variable[];
  /** Predicate and types, `in(k,c)`: facts are looked up by it. */
  readonly signature: string;
  /** Equal for equal propositions. */
  readonly key: string;

  constructor(name: string, variables: readonly Variable[]) {
    this.name = name;
    this.variables = variables;
    this.signature = formatSignature(
      name,
      variables.map((variable) => variable.type),
    );
    this.key = `${name}(${variables.map((variable) => `${variable.name}:${variable.type}`).join(",")})`;
  }

  /** TextWorld's notation: a type is left out where it equals the name. */
  toString(): string {
    return `${this.name}(${this.variables.map(formatVariable).join(", ")})`;
  }
}

/** The lookup key of a predicate with these argument types. */
export function formatSignature(name: string, types: readonly string[]): string {
  return `${name}(${types.join(",")})`;
}

function formatVariable({ name, type }: Variable): string {
  return name === type ? name : `${name}: ${type}`;
}

/** Orders strings by UTF-16 unit, which equals Python's order outside the astral planes. */
export function compareStrings(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Orders propositions of one predicate by their things' names, then types, first argument first. */
export function compareArguments(a: Proposition, b: Proposition): number {
  const shared = Math.min(a.variables.length, b.variables.length);
  for (let i = 0; i < shared; i++) {
    const [left, right] = [a.variables[i], b.variables[i]];
    const order = compareStrings(left.name, right.name) || compareStrings(left.type, right.type);
    if (order !== 0) return order;
  }
  return a.variables.length - b.variables.length;
}

/** Orders variables by name, then type. */
export function compareVariables(a: Variable, b: Variable): number {
  return compareStrings(a.name, b.name) || compareStrings(a.type, b.type);
}

/** A variable's name within a rule, such as `r'`; its type is the name without apostrophes unless stated. */
export interface Placeholder {
  readonly name: string;
  readonly type: string;
}

/** A proposition with placeholders instead of things. */
export interface Predicate {
  readonly name: string;
  readonly placeholders: readonly Placeholder[];
}

/** The lookup key of a predicate's declared types. */
export function formatPredicateSignature(predicate: Predicate): string {
  return formatSignature(
    predicate.name,
    predicate.placeholders.map((placeholder) => placeholder.type),
  );
}

/** Fills `{name}` fields of a command or event template; `{{` and `}}` stand for braces. */
export function fillTemplate(template: string, value: (field: string) => string): string {
  return template.replace(/\{\{|\}\}|\{([^{}]*)\}/g, (match, field: string | undefined) =>
    field === undefined ? match[0] : value(field),
  );
}
