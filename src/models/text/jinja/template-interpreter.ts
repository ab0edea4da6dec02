import type { CallExpression, Expression, For, Identifier, Parameter, TemplateNode } from "@huggingface/jinja";

import { MAX_DEPTH, limitError, spendItems, spendSteps, spendText } from "./limits.js";
import { applyOperator, getMember, slice, subscript } from "./operators.js";
import { toPythonString } from "./python-text.js";
import { applyFilter } from "./template-filters.js";
import { Scope, createLoopVariables } from "./template-scope.js";
import { templateTests } from "./template-tests.js";
import {
  type CallArguments,
  Float,
  Namespace,
  type TemplateFunction,
  Tuple,
  Undefined,
  type Value,
  asNumber,
  callMeasured,
  dictEntries,
  getPythonType,
  isTruthy,
  iterate,
  measure,
  requireDefined,
  toNumber,
} from "./values.js";

/** How a block ended: at a break or continue of the enclosing loop, or at its end. */
type BlockEnd = "break" | "continue" | undefined;

/** Steps of a loop iteration besides its body, which creates a scope and the loop variables. */
const ITERATION_STEPS = 8;

/**
 * Runs chat templates that @huggingface/jinja parsed, with Python's semantics and within the limits
 * of limits.ts; see docs/decisions/jinja.md.
 */
export class TemplateInterpreter {
  private depth = 0;

  /** Renders statements. */
  render(body: readonly TemplateNode[], scope: Scope): string {
    const output = { text: "" };
    if (this.execute(body, scope, output)) throw new Error("break and continue belong into a loop");
    return output.text;
  }

  private execute(body: readonly TemplateNode[], scope: Scope, output: { text: string }): BlockEnd {
    for (const node of body) {
      this.enter();
      const end = this.executeStatement(node, scope, output);
      this.depth--;
      if (end) return end;
    }
    return undefined;
  }

  private executeStatement(node: TemplateNode, scope: Scope, output: { text: string }): BlockEnd {
    const print = (value: Value) => {
      const text = toPythonString(value);
      spendText(text.length);
      output.text += text;
      return undefined;
    };
    switch (node.type) {
      case "If":
        return this.execute(isTruthy(this.evaluate(node.test, scope)) ? node.body : node.alternate, scope, output);
      case "For":
        return this.executeLoop(node, scope, output);
      case "Break":
        return "break";
      case "Continue":
        return "continue";
      case "Set": {
        const value = node.value ? this.evaluate(node.value, scope) : this.render(node.body, new Scope(scope));
        return this.assign(node.assignee, value, scope);
      }
      case "Macro":
        scope.set(node.name.value, this.createMacro(node.name.value, node.args, node.body, scope));
        return undefined;
      case "CallStatement": {
        const args = this.readArguments(node.call.args, scope);
        const caller = this.createMacro("caller", node.callerArgs ?? [], node.body, scope);
        const named = new Map(args.named).set("caller", caller);
        return print(this.call(node.call.callee, { ...args, named }, scope));
      }
      case "FilterStatement":
        return print(this.applyFilterNode(node.filter, this.render(node.body, new Scope(scope)), scope));
      case "Comment":
        return undefined;
      default:
        return print(this.evaluate(node, scope));
    }
  }

  private executeLoop(node: For, scope: Scope, output: { text: string }): BlockEnd {
    const condition = node.iterable.type === "SelectExpression" ? node.iterable : null;
    const all = iterate(this.evaluate(condition ? condition.lhs : node.iterable, scope));
    const bind = (item: Value) => {
      spendSteps(ITERATION_STEPS);
      const iteration = new Scope(scope);
      this.assign(node.loopvar, item, iteration);
      return iteration;
    };
    const items = condition ? all.filter((item) => isTruthy(this.evaluate(condition.test, bind(item)))) : all;
    if (items.length === 0) return this.execute(node.defaultBlock, scope, output);
    for (let i = 0; i < items.length; i++) {
      const iteration = bind(items[i]);
      iteration.set("loop", createLoopVariables(items, i));
      if (this.execute(node.body, iteration, output) === "break") break;
    }
    return undefined;
  }

  private assign(target: Expression, value: Value, scope: Scope): undefined {
    if (target.type === "Identifier") {
      scope.set(target.value, value);
    } else if (target.type === "TupleLiteral") {
      const parts = iterate(value);
      if (parts.length !== target.value.length)
        throw new Error(`${parts.length} values cannot be unpacked into ${target.value.length} names`);
      target.value.forEach((name, i) => this.assign(name, parts[i], scope));
    } else if (target.type === "MemberExpression" && target.property.type === "Identifier") {
      const object = this.evaluate(target.object, scope);
      if (!(object instanceof Namespace)) throw new Error("cannot assign attribute on non-namespace object");
      object.entries.set(target.property.value, value);
    } else {
      throw new Error(`cannot assign to ${target.type}`);
    }
  }

  private createMacro(
    name: string,
    parameters: readonly Parameter[],
    body: readonly TemplateNode[],
    definition: Scope,
  ): TemplateFunction {
    const [takesVarargs, takesKwargs] = ["varargs", "kwargs"].map((special) =>
      mentionsName([parameters, body], special),
    );
    return (args) => {
      const scope = new Scope(definition);
      const named = new Map(args.named);
      const defaults: [name: string, value: Expression][] = [];
      parameters.forEach((parameter, i) => {
        const key = parameter.type === "Identifier" ? parameter.value : parameter.key.value;
        const value = args.positional[i] ?? named.get(key);
        if (i >= args.positional.length) named.delete(key);
        if (value === undefined && parameter.type !== "Identifier") defaults.push([key, parameter.value]);
        scope.set(key, value === undefined ? new Undefined(`parameter '${key}' was not provided`) : value);
      });
      const caller = named.get("caller");
      if (caller !== undefined) scope.set("caller", caller);
      named.delete("caller");
      if (takesKwargs) scope.set("kwargs", named);
      else if (named.size > 0)
        throw new Error(`macro '${name}' takes no keyword argument '${Array.from(named.keys())[0]}'`);
      if (takesVarargs) scope.set("varargs", new Tuple(args.positional.slice(parameters.length)));
      else if (args.positional.length > parameters.length)
        throw new Error(`macro '${name}' takes not more than ${parameters.length} argument(s)`);
      for (const [key, value] of defaults) scope.set(key, this.evaluate(value, scope));
      return this.render(body, scope);
    };
  }

  private evaluate(node: TemplateNode, scope: Scope): Value {
    this.enter();
    const value = this.evaluateExpression(node, scope);
    this.depth--;
    return value;
  }

  /** An exception ends the rendering, so that `depth` needs no reset. */
  private enter(): void {
    spendSteps(1);
    if (++this.depth > MAX_DEPTH) throw limitError(MAX_DEPTH, "nested expressions, blocks and calls");
  }

  private evaluateExpression(node: TemplateNode, scope: Scope): Value {
    switch (node.type) {
      case "StringLiteral":
      case "IntegerLiteral":
        return node.value;
      case "FloatLiteral":
        return new Float(node.value);
      case "ArrayLiteral":
        return node.value.map((item) => this.evaluate(item, scope));
      case "TupleLiteral":
        return new Tuple(node.value.map((item) => this.evaluate(item, scope)));
      case "ObjectLiteral":
        return new Map(
          Array.from(node.value, ([key, value]) => [this.evaluateKey(key, scope), this.evaluate(value, scope)]),
        );
      case "Identifier":
        return scope.get(node.value);
      case "MemberExpression": {
        const object = this.evaluate(node.object, scope);
        requireDefined(object);
        const { property } = node;
        if (property.type === "SliceExpression") {
          const bounds = [property.start, property.stop, property.step];
          return slice(
            object,
            bounds.map((bound) => bound && this.evaluate(bound, scope)),
          );
        }
        if (node.computed || property.type !== "Identifier") return subscript(object, this.evaluate(property, scope));
        return getMember(object, property.value);
      }
      case "CallExpression":
        return this.call(node.callee, this.readArguments(node.args, scope), scope);
      case "UnaryExpression":
        return applyUnary(node.operator.value, this.evaluate(node.argument, scope));
      case "BinaryExpression": {
        const left = this.evaluate(node.left, scope);
        const operator = node.operator.value;
        if (operator === "and") return isTruthy(left) ? this.evaluate(node.right, scope) : left;
        if (operator === "or") return isTruthy(left) ? left : this.evaluate(node.right, scope);
        return applyOperator(operator, left, this.evaluate(node.right, scope));
      }
      case "FilterExpression":
        return this.applyFilterNode(node.filter, this.evaluate(node.operand, scope), scope);
      case "TestExpression": {
        const operand = this.evaluate(node.operand, scope);
        const test = templateTests.get(node.test.value);
        if (!test) throw new Error(`No test named '${node.test.value}'.`);
        measure(operand);
        return test(operand, undefined) !== node.negate;
      }
      case "Ternary":
        return this.evaluate(isTruthy(this.evaluate(node.condition, scope)) ? node.trueExpr : node.falseExpr, scope);
      case "SelectExpression":
        if (isTruthy(this.evaluate(node.test, scope))) return this.evaluate(node.lhs, scope);
        return new Undefined("the inline if-expression evaluated to false and no else section was defined");
      default:
        throw new Error(`${node.type} is not an expression`);
    }
  }

  private evaluateKey(node: Expression, scope: Scope): string {
    const key = this.evaluate(node, scope);
    if (typeof key !== "string") throw new Error(`dictionary keys must be strings, not ${getPythonType(key)}`);
    return key;
  }

  private call(callee: Expression, args: CallArguments, scope: Scope): Value {
    const fn = this.evaluate(callee, scope);
    requireDefined(fn);
    if (typeof fn !== "function") throw new Error(`'${getPythonType(fn)}' object is not callable`);
    return callMeasured(fn, args);
  }

  private applyFilterNode(node: Identifier | CallExpression, value: Value, scope: Scope): Value {
    const [name, args] = node.type === "CallExpression" ? [node.callee, node.args] : [node, []];
    return applyFilter(name.type === "Identifier" ? name.value : "", value, this.readArguments(args, scope));
  }

  private readArguments(nodes: readonly Expression[], scope: Scope): CallArguments {
    const positional: Value[] = [];
    const named = new Map<string, Value>();
    for (const node of nodes) {
      if (node.type === "KeywordArgumentExpression") {
        named.set(node.key.value, this.evaluate(node.value, scope));
      } else if (node.type === "SpreadExpression") {
        const items = iterate(this.evaluate(node.argument, scope));
        spendItems(items.length);
        for (const item of items) positional.push(item);
      } else if (node.type === "KeywordSpreadExpression") {
        dictEntries(this.evaluate(node.argument, scope))?.forEach((value, name) => named.set(name, value));
      } else {
        positional.push(this.evaluate(node, scope));
      }
    }
    return { positional, named };
  }
}

function applyUnary(operator: string, value: Value): Value {
  if (operator === "not") return !isTruthy(value);
  const number = asNumber(value);
  if (number === undefined) throw new Error(`bad operand type for unary ${operator}: '${getPythonType(value)}'`);
  return toNumber(operator === "-" ? -number : number, value instanceof Float);
}

/** Whether a name occurs in parsed nodes. */
function mentionsName(node: unknown, name: string): boolean {
  spendSteps(1);
  if (typeof node !== "object" || node === null) return false;
  if (Reflect.get(node, "type") === "Identifier") return Reflect.get(node, "value") === name;
  const parts: unknown[] = node instanceof Map ? Array.from(node).flat() : Object.values(node);
  return parts.some((part) => mentionsName(part, name));
}
