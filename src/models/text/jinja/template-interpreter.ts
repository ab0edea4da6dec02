import type { CheckedTemplate } from "./check-template.js";
import { ExpressionEvaluator } from "./expression-evaluator.js";
import { iterate, lazy } from "./iteration.js";
import { spendSteps, spendText } from "./limits.js";
import { LoopContext } from "./loop-context.js";
import { MacroFunction } from "./macro.js";
import { escapeMarkup } from "./markup.js";
import { toPythonString } from "./python-text.js";
import type {
  Block,
  Body,
  CallBlock,
  TemplateExpression,
  For,
  Macro,
  SetBlock,
  Statement,
  With,
} from "./template-ast.js";
import { Scope } from "./template-scope.js";
import { Markup, Namespace, PythonObject, type TemplateFunction, Undefined, type Value, isTruthy } from "./values.js";

/** How a block ended: at a break or continue of the enclosing loop, or at its end. */
type BlockEnd = "break" | "continue" | undefined;

interface Output {
  text: string;
}

/** Steps of a loop iteration besides its body, which creates a scope and the loop variables. */
const ITERATION_STEPS = 8;

/** Renders checked templates as jinja2 does; see docs/decisions/jinja.md. */
export class TemplateInterpreter extends ExpressionEvaluator {
  /** The template's own scope, which blocks see. */
  private readonly root: Scope;

  /** `marks` are written before and after {% generation %} blocks. */
  constructor(
    private readonly template: CheckedTemplate,
    globals: Scope,
    private readonly marks: { readonly open: string; readonly close: string },
  ) {
    super();
    this.root = this.createScope(globals, template.body);
    this.root.set("self", new TemplateReference((name) => this.findBlock(name)));
  }

  render(): string {
    return this.renderBody(this.template.body, this.root);
  }

  private findBlock(name: string): TemplateFunction | undefined {
    const block = this.template.blocks.get(name);
    return block && (() => this.toText(this.renderBlock(block, this.root)));
  }

  /** Creates the scope of a body with its own variables. */
  private createScope(parent: Scope, body: object): Scope {
    return new Scope(parent, this.template.hidden.get(body));
  }

  /** Returns a rendered body as a value. */
  private toText(text: string): Value {
    return this.autoescape ? new Markup(text) : text;
  }

  private renderBody(body: Body, scope: Scope): string {
    const output = { text: "" };
    this.execute(body, scope, output);
    return output.text;
  }

  /** Renders a block, which is not escaped where it is printed. */
  private renderBlock({ body }: Block, parent: Scope): string {
    const outer = this.autoescape;
    this.autoescape = false;
    const text = this.renderBody(body, this.createScope(parent, body));
    this.autoescape = outer;
    return text;
  }

  private execute(body: Body, scope: Scope, output: Output): BlockEnd {
    for (const node of body) {
      const end = this.nested(() => this.executeStatement(node, scope, output));
      if (end) return end;
    }
    return undefined;
  }

  private write(text: string, output: Output): void {
    spendText(text.length);
    output.text += text;
  }

  private print(value: Value, output: Output): undefined {
    this.write(this.autoescape ? escapeMarkup(value).text : toPythonString(value), output);
  }

  private executeStatement(node: Statement, scope: Scope, output: Output): BlockEnd {
    switch (node.type) {
      case "Text":
        this.write(node.text, output);
        return undefined;
      case "Print":
        for (const part of node.nodes) this.print(this.evaluate(part, scope), output);
        return undefined;
      case "If": {
        const branch = node.branches.find(({ test }) => isTruthy(this.evaluate(test, scope)));
        return this.execute(branch ? branch.body : node.otherwise, scope, output);
      }
      case "For":
        return this.executeLoop(node, scope, output);
      case "Break":
        return "break";
      case "Continue":
        return "continue";
      case "Set":
        return this.assign(node.target, this.evaluate(node.value, scope), scope);
      case "SetBlock":
        return this.executeSetBlock(node, scope);
      case "Macro":
        scope.set(node.name, this.createMacro(node, scope));
        return undefined;
      case "CallBlock": {
        const caller = new Map([["caller", this.createMacro(node, scope)]]);
        return this.print(this.callNode(node.call.callee, node.call, scope, caller), output);
      }
      case "FilterBlock": {
        const inner = this.createScope(scope, node.body);
        const body = { text: "" };
        const end = this.execute(node.body, inner, body);
        return end ?? this.print(this.filterBody(node.filter, this.toText(body.text), inner), output);
      }
      case "With":
        return this.executeWith(node, scope, output);
      case "Autoescape":
        return this.executeAutoescape(node.value, node.body, scope, output);
      case "Generation": {
        const caller = this.createMacro({ ...node, type: "CallBlock", parameters: [], defaults: [] }, scope);
        output.text += this.marks.open;
        this.print(caller.call({ positional: [], named: new Map() }), output);
        output.text += this.marks.close;
        return undefined;
      }
      case "Block": {
        this.write(this.renderBlock(node, node.isScoped ? scope : this.root), output);
        return undefined;
      }
    }
  }

  private executeSetBlock({ target, filter, body }: SetBlock, scope: Scope): BlockEnd {
    const inner = this.createScope(scope, body);
    const output = { text: "" };
    const end = this.execute(body, inner, output);
    if (end) return end;
    const text = this.toText(output.text);
    const value = filter ? this.filterBody(filter, text, inner) : text;
    return this.assign(target, this.autoescape ? new Markup(toPythonString(value)) : value, scope);
  }

  /** Applies a chain of filters whose first has a body's text as value. */
  private filterBody(node: Extract<TemplateExpression, { type: "Filter" }>, text: Value, scope: Scope): Value {
    const value = node.node?.type === "Filter" ? this.filterBody(node.node, text, scope) : text;
    return this.filterNode(node, value, scope);
  }

  private executeWith({ targets, values, body }: With, scope: Scope, output: Output): BlockEnd {
    const inner = this.createScope(scope, body);
    targets.forEach((target, i) => this.assign(target, this.evaluate(values[i], scope), inner));
    return this.execute(body, inner, output);
  }

  private executeAutoescape(value: TemplateExpression, body: Body, scope: Scope, output: Output): BlockEnd {
    const outer = this.autoescape;
    this.autoescape = isTruthy(this.evaluate(value, scope));
    const end = this.execute(body, this.createScope(scope, body), output);
    this.autoescape = outer;
    return end;
  }

  private executeLoop(node: For, scope: Scope, output: Output): BlockEnd {
    const iterable = this.evaluate(node.iterable, scope);
    if (!node.isRecursive) return this.iterateLoop(node, iterable, scope, output, 0);
    const recurse = (inner: Value, depth: number): Value => {
      const body = { text: "" };
      this.nested(() => this.iterateLoop(node, inner, scope, body, depth, recurse));
      return this.toText(body.text);
    };
    return this.print(recurse(iterable, 0), output);
  }

  private iterateLoop(
    node: For,
    iterable: Value,
    scope: Scope,
    output: Output,
    depth: number,
    recurse?: (iterable: Value, depth: number) => Value,
  ): BlockEnd {
    const loop = new LoopContext(node.test ? this.filterItems(node, iterable, scope) : iterable, depth, recurse);
    // Jinja runs the else block unless an iteration reached the end of the body.
    let isComplete = false;
    for (let item = loop.next(); item !== undefined; item = loop.next()) {
      spendSteps(ITERATION_STEPS);
      const iteration = this.createScope(scope, node.body);
      this.assign(node.target, item, iteration);
      iteration.set("loop", loop);
      const end = this.execute(node.body, iteration, output);
      if (end === "break") break;
      if (end === undefined) isComplete = true;
    }
    return isComplete ? undefined : this.execute(node.otherwise, this.createScope(scope, node.otherwise), output);
  }

  /** Returns the items that meet a loop's condition, each when the loop comes to it. */
  private filterItems({ target, test }: For, iterable: Value, scope: Scope): Value {
    const accepts = (item: Value) => {
      spendSteps(ITERATION_STEPS);
      const inner = this.createScope(scope, test ?? {});
      this.assign(target, item, inner);
      return test === null || isTruthy(this.evaluate(test, inner));
    };
    return lazy(iterable, function* (items) {
      for (const item of items) if (accepts(item)) yield item;
    });
  }

  private assign(target: TemplateExpression, value: Value, scope: Scope): undefined {
    if (target.type === "Name") {
      scope.set(target.name, value);
    } else if (target.type === "Tuple") {
      const parts = iterate(value);
      if (parts.length !== target.items.length)
        throw new Error(`${parts.length} values cannot be unpacked into ${target.items.length} names`);
      target.items.forEach((name, i) => this.assign(name, parts[i], scope));
    } else if (target.type === "NamespaceReference") {
      const object = scope.get(target.name);
      if (!(object instanceof Namespace)) throw new Error("cannot assign attribute on non-namespace object");
      object.entries.set(target.attribute, value);
    }
  }

  private createMacro(node: Macro | Omit<CallBlock, "call">, definition: Scope): MacroFunction {
    const { parameters, defaults, body } = node;
    const firstDefault = parameters.length - defaults.length;
    const { autoescape } = this;
    const special = this.template.specialNames.get(body) ?? new Set();
    return new MacroFunction({
      name: node.type === "Macro" ? node.name : null,
      parameters,
      readsCaller: special.has("caller"),
      readsKwargs: special.has("kwargs") && !parameters.includes("kwargs"),
      readsVarargs: special.has("varargs") && !parameters.includes("varargs"),
      autoescape: () => this.autoescape,
      render: (values) => {
        const scope = this.createScope(definition, body);
        for (const [name, value] of values) if (value !== undefined) scope.set(name, value);
        parameters.forEach((name, i) => {
          if (values.get(name) !== undefined) return;
          const fallback = defaults[i - firstDefault];
          // A default sees parameters that come after it as undefined.
          for (const later of parameters.slice(i))
            if (values.get(later) === undefined)
              scope.set(later, new Undefined(`parameter '${later}' was not provided`));
          if (fallback !== undefined) scope.set(name, this.evaluate(fallback, scope));
        });
        const outer = this.autoescape;
        this.autoescape = autoescape;
        const text = this.renderBody(body, scope);
        this.autoescape = outer;
        return text;
      },
    });
  }
}

/** The variable `self`: the template's blocks as functions. */
class TemplateReference extends PythonObject {
  readonly type = "TemplateReference";

  constructor(private readonly find: (name: string) => TemplateFunction | undefined) {
    super();
  }

  override getAttribute(name: string): Value | undefined {
    return this.find(name);
  }
}
