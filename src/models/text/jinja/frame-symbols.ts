import { listOperands, listTargets } from "./template-nodes.js";
import type { Body, TemplateExpression, If, Statement } from "./template-ast.js";

/**
 * The names of a block with its own variables, as Jinja resolves them before rendering: a name that
 * the block always stores before it reads it is undefined up to there, even where an outer variable
 * has that name.
 */
export class FrameSymbols {
  private readonly known = new Set<string>();
  private readonly hiddenNames = new Set<string>();

  constructor(private readonly parent?: FrameSymbols) {}

  /** Names that are undefined until they are stored. */
  get hidden(): ReadonlySet<string> {
    return this.hiddenNames;
  }

  declare(names: readonly string[]): this {
    for (const name of names) this.known.add(name);
    return this;
  }

  analyze(body: Body): this {
    for (const node of body) this.visit(node);
    return this;
  }

  load(...nodes: readonly (TemplateExpression | null)[]): this {
    for (const node of nodes) {
      if (node === null) continue;
      if (node.type === "Name") this.loadName(node.name);
      else this.load(...listOperands(node));
    }
    return this;
  }

  storeTarget(target: TemplateExpression): this {
    const { names, namespaces } = listTargets(target);
    for (const name of namespaces) this.loadName(name);
    for (const name of names) this.store(name);
    return this;
  }

  private find(name: string): boolean {
    return this.known.has(name) || (this.parent?.find(name) ?? false);
  }

  private loadName(name: string): void {
    if (!this.find(name)) this.known.add(name);
  }

  private store(name: string): void {
    if (this.known.has(name)) return;
    if (!this.find(name)) this.hiddenNames.add(name);
    this.known.add(name);
  }

  private visit(node: Statement): void {
    switch (node.type) {
      case "Print":
        this.load(...node.nodes);
        return;
      case "Set":
        this.load(node.value).storeTarget(node.target);
        return;
      case "SetBlock":
        this.storeTarget(node.target);
        return;
      case "If":
        this.visitIf(node.branches, node.otherwise);
        return;
      case "For":
        this.load(node.iterable);
        return;
      case "Macro":
        this.store(node.name);
        return;
      case "CallBlock":
        this.load(node.call);
        return;
      case "With":
        this.load(...node.values);
        return;
      case "FilterBlock":
        this.load(node.filter);
        return;
      default:
    }
  }

  /** A name that a branch stores may be an outer variable in the others. */
  private visitIf([first, ...rest]: If["branches"], otherwise: Body): void {
    this.load(first.test);
    const branches = [this.copy(), this.copy(), this.copy()];
    branches[0].analyze(first.body);
    for (const branch of rest) branches[1].visitIf([branch], []);
    branches[2].analyze(otherwise);
    for (const { known } of branches) this.declare(Array.from(known));
  }

  private copy(): FrameSymbols {
    return new FrameSymbols(this.parent).declare(Array.from(this.known));
  }
}
