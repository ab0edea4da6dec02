import { PythonDict } from "./dict.js";
import type { FilterContext } from "./filters/define-filter.js";
import { iterate } from "./iteration.js";
import { MAX_DEPTH, concatenate, limitError, spendItems, spendSteps } from "./limits.js";
import { escapeMarkup } from "./markup.js";
import { getAttribute, getItem, slice, toNamed } from "./members.js";
import { applyComparison, applyOperator, applySign } from "./operators.js";
import { toPythonString } from "./python-text.js";
import type { Arguments, TemplateExpression, Filter, Test } from "./template-ast.js";
import { templateFilters } from "./template-filters.js";
import type { Scope } from "./template-scope.js";
import { templateTests } from "./template-tests.js";
import {
  type CallArguments,
  Markup,
  PythonTuple,
  Undefined,
  type Value,
  callMeasured,
  isTruthy,
  measure,
  requireCallable,
} from "./values.js";

/** Evaluates expressions with Python's semantics and within the limits of limits.ts. */
export class ExpressionEvaluator implements FilterContext {
  /** Whether printed values are escaped: inside `{% autoescape true %}`. */
  autoescape = false;
  private depth = 0;

  evaluate(node: TemplateExpression, scope: Scope): Value {
    return this.nested(() => this.evaluateNode(node, scope));
  }

  /**
   * Calls a function one level deeper; an exception ends the rendering, so that the level needs no
   * reset.
   */
  protected nested<Result>(run: () => Result): Result {
    spendSteps(1);
    if (++this.depth > MAX_DEPTH) throw limitError(MAX_DEPTH, "nested expressions, blocks and calls");
    const result = run();
    this.depth--;
    return result;
  }

  private evaluateNode(node: TemplateExpression, scope: Scope): Value {
    switch (node.type) {
      case "Constant":
        return node.value;
      case "Name":
        return scope.get(node.name);
      case "NamespaceReference":
        return getAttribute(scope.get(node.name), node.attribute);
      case "List":
        return node.items.map((item) => this.evaluate(item, scope));
      case "Tuple":
        return new PythonTuple(node.items.map((item) => this.evaluate(item, scope)));
      case "Dict":
        return new PythonDict(
          node.items.map(([key, value]) => [this.evaluate(key, scope), this.evaluate(value, scope)]),
        );
      case "Attribute":
        return getAttribute(this.evaluate(node.node, scope), node.name);
      case "Item":
        return this.evaluateItem(this.evaluate(node.node, scope), node.index, scope);
      case "Slice":
        throw new Error("slices of several dimensions are not supported");
      case "Call":
        return this.callNode(node.callee, node, scope);
      case "Filter":
        return this.filterNode(node, node.node ? this.evaluate(node.node, scope) : "", scope);
      case "Test":
        return this.testNode(node, scope);
      case "Unary": {
        const value = this.evaluate(node.node, scope);
        return node.operator === "not" ? !isTruthy(value) : applySign(node.operator, value);
      }
      case "Binary":
        return applyOperator(node.operator, this.evaluate(node.left, scope), this.evaluate(node.right, scope));
      case "And":
      case "Or": {
        const left = this.evaluate(node.left, scope);
        return isTruthy(left) === (node.type === "And") ? this.evaluate(node.right, scope) : left;
      }
      case "Compare":
        return this.compareNode(node.first, node.operands, scope);
      case "Concat":
        return this.concatenateAll(node.nodes.map((part) => this.evaluate(part, scope)));
      case "Condition":
        if (isTruthy(this.evaluate(node.test, scope))) return this.evaluate(node.value, scope);
        if (node.otherwise) return this.evaluate(node.otherwise, scope);
        return new Undefined("the inline if-expression evaluated to false and no else section was defined.");
    }
  }

  private evaluateItem(object: Value, index: TemplateExpression, scope: Scope): Value {
    if (index.type !== "Slice") return getItem(object, this.evaluate(index, scope));
    return slice(
      object,
      index.bounds.map((bound) => bound && this.evaluate(bound, scope)),
    );
  }

  private compareNode(
    first: TemplateExpression,
    operands: readonly (readonly [string, TemplateExpression])[],
    scope: Scope,
  ): boolean {
    let left = this.evaluate(first, scope);
    for (const [operator, node] of operands) {
      const right = this.evaluate(node, scope);
      if (!applyComparison(operator, left, right)) return false;
      left = right;
    }
    return true;
  }

  private concatenateAll(values: readonly Value[]): Value {
    const isMarkup = this.autoescape && values.some((value) => value instanceof Markup);
    const text = values
      .map((value) => (isMarkup ? escapeMarkup(value).text : toPythonString(value)))
      .reduce(concatenate, "");
    return isMarkup ? new Markup(text) : text;
  }

  /** Evaluates a call; `extra` are further keyword arguments. */
  protected callNode(
    callee: TemplateExpression,
    nodes: Arguments,
    scope: Scope,
    extra?: ReadonlyMap<string, Value>,
  ): Value {
    const value = this.evaluate(callee, scope);
    const { positional, named } = this.readArguments(nodes, scope);
    return callMeasured(requireCallable(value), { positional, named: extra ? new Map([...named, ...extra]) : named });
  }

  protected filterNode(node: Filter, value: Value, scope: Scope): Value {
    return this.applyFilter(node.name, value, this.readArguments(node, scope));
  }

  applyFilter(name: string, value: Value, args: CallArguments): Value {
    const filter = templateFilters.get(name);
    if (!filter) throw new Error(`No filter named '${name}'.`);
    return callMeasured(
      ({ positional: [first = null, ...positional], named }) => filter(first, { positional, named }, this),
      { positional: [value, ...args.positional], named: args.named },
    );
  }

  private testNode(node: Test, scope: Scope): boolean {
    return this.applyTest(node.name, this.evaluate(node.node, scope), this.readArguments(node, scope));
  }

  applyTest(name: string, value: Value, args: CallArguments): boolean {
    const test = templateTests.get(name);
    if (!test) throw new Error(`No test named '${name}'.`);
    measure(value);
    return test(value, args);
  }

  private readArguments({ args, kwargs, spreadArgs, spreadKwargs }: Arguments, scope: Scope): CallArguments {
    const positional = args.map((node) => this.evaluate(node, scope));
    const named = new Map(kwargs.map(([name, node]) => [name, this.evaluate(node, scope)] as const));
    if (spreadArgs) {
      const items = iterate(this.evaluate(spreadArgs, scope));
      spendItems(items.length);
      for (const item of items) positional.push(item);
    }
    if (spreadKwargs) {
      const mapping = this.evaluate(spreadKwargs, scope);
      if (!(mapping instanceof PythonDict)) throw new Error("argument after ** must be a mapping");
      for (const [name, value] of toNamed(mapping)) {
        if (named.has(name)) throw new Error(`got multiple values for keyword argument '${name}'`);
        named.set(name, value);
      }
    }
    return { positional, named };
  }
}
