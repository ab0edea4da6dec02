import type { Arguments, Body, TemplateExpression, Statement } from "./template-ast.js";

/** Returns the expressions of a call's arguments. */
function listArguments({ args, kwargs, spreadArgs, spreadKwargs }: Arguments): TemplateExpression[] {
  const spread = [spreadArgs, spreadKwargs].filter((node) => node !== null);
  return [...args, ...kwargs.map(([, value]) => value), ...spread];
}

const optional = (...nodes: readonly (TemplateExpression | null)[]) => nodes.filter((node) => node !== null);

/** Returns the expressions inside an expression. */
export function listOperands(node: TemplateExpression): readonly TemplateExpression[] {
  switch (node.type) {
    case "Call":
      return [node.callee, ...listArguments(node)];
    case "Filter":
    case "Test":
      return [...optional(node.node), ...listArguments(node)];
    case "List":
    case "Tuple":
      return node.items;
    case "Dict":
      return node.items.flat();
    case "Attribute":
    case "Unary":
      return [node.node];
    case "Item":
      return [node.node, node.index];
    case "Slice":
      return optional(...node.bounds);
    case "Binary":
    case "And":
    case "Or":
      return [node.left, node.right];
    case "Compare":
      return [node.first, ...node.operands.map(([, value]) => value)];
    case "Concat":
      return node.nodes;
    case "Condition":
      return optional(node.test, node.value, node.otherwise);
    case "Name":
    case "NamespaceReference":
    case "Constant":
      return [];
  }
}

/** Returns the names that an assignment's target stores, and the namespaces that it changes. */
export function listTargets(target: TemplateExpression): {
  readonly names: readonly string[];
  readonly namespaces: readonly string[];
} {
  if (target.type === "Name") return { names: [target.name], namespaces: [] };
  if (target.type === "NamespaceReference") return { names: [], namespaces: [target.name] };
  const parts = target.type === "Tuple" ? target.items.map(listTargets) : [];
  return { names: parts.flatMap(({ names }) => names), namespaces: parts.flatMap(({ namespaces }) => namespaces) };
}

/** Whether a name is read in a body before something inside it, such as a parameter, stores it. */
export function readsName(body: Body, name: string): boolean {
  return new NameSearch(name).search(body);
}

class NameSearch {
  /** Whether the name was stored; what follows reads that. */
  private isStored = false;

  constructor(private readonly name: string) {}

  search(body: Body): boolean {
    return body.some((node) => this.searchStatement(node));
  }

  private store(names: readonly string[]): false {
    if (names.includes(this.name)) this.isStored = true;
    return false;
  }

  private reads(...nodes: readonly (TemplateExpression | null)[]): boolean {
    return nodes.some((node) => {
      if (node === null || this.isStored) return false;
      return node.type === "Name" ? node.name === this.name : this.reads(...listOperands(node));
    });
  }

  private searchStatement(node: Statement): boolean {
    switch (node.type) {
      case "Print":
        return this.reads(...node.nodes);
      case "Set":
        return this.store(listTargets(node.target).names) || this.reads(node.value);
      case "SetBlock":
        return this.store(listTargets(node.target).names) || this.reads(node.filter) || this.search(node.body);
      case "If":
        return (
          node.branches.some(({ test, body }) => this.reads(test) || this.search(body)) || this.search(node.otherwise)
        );
      case "For":
        return (
          this.store(listTargets(node.target).names) ||
          this.reads(node.iterable) ||
          this.search(node.body) ||
          this.search(node.otherwise) ||
          this.reads(node.test)
        );
      case "Macro":
      case "CallBlock":
        return (
          this.store(node.parameters) ||
          this.reads(...node.defaults, node.type === "CallBlock" ? node.call : null) ||
          this.search(node.body)
        );
      case "With":
        return (
          node.targets.some((target) => this.store(listTargets(target).names)) ||
          this.reads(...node.values) ||
          this.search(node.body)
        );
      case "FilterBlock":
        return this.search(node.body) || this.reads(node.filter);
      case "Autoescape":
        return this.reads(node.value) || this.search(node.body);
      case "Generation":
        return this.search(node.body);
      default:
        return false;
    }
  }
}
