import { Environment, Interpreter, type TemplateNode, type Value } from "@huggingface/jinja";

import { templateFilters } from "./template-filters.js";
import { type Nodes, asNode } from "./nodes.js";
import { createUndefined, applyOperator, requireDefined, subscript } from "./operators.js";
import { toPythonString } from "./python-text.js";
import { type CallArguments, stringMethods } from "./string-methods.js";
import { templateTests } from "./template-tests.js";
import {
  dictEntries,
  dictValue,
  functionValue,
  isTruthy,
  isUndefined,
  iterate,
  listItems,
  listValue,
  asString,
  toValue,
  tupleValue,
} from "./values.js";

/** A break or continue, with the iteration's output so far. */
class LoopControl extends Error {
  output = "";

  constructor(readonly isBreak: boolean) {
    super("break and continue belong into a loop");
  }
}

type DictMethod = (entries: ReadonlyMap<string, Value>, args: Value[]) => Value;

/** Dictionary methods. */
const dictMethods: ReadonlyMap<string, DictMethod> = new Map<string, DictMethod>([
  ["get", (entries, [key, fallback]) => entries.get(asString(key) ?? "") ?? fallback ?? toValue(null)],
  ["items", (entries) => listValue(Array.from(entries, ([key, value]) => tupleValue([toValue(key), value])))],
  ["keys", (entries) => listValue(Array.from(entries.keys(), toValue))],
  ["values", (entries) => listValue(Array.from(entries.values()))],
  ["copy", (entries) => dictValue(entries)],
]);
const BOUND_VALUE_NAME = "\u0000held";

/**
 * Runs chat templates with Python's semantics where @huggingface/jinja differs: using undefined
 * values raises, and str(), equality, string methods, filters and loop scopes follow Python and
 * Jinja.
 */
export class TemplateInterpreter extends Interpreter {
  override evaluate(statement: TemplateNode | undefined, environment: Environment): Value {
    if (!statement) return super.evaluate(statement, environment);
    const evaluator = evaluators[statement.type as keyof Nodes] as Evaluator<never> | undefined;
    return evaluator ? evaluator(this, statement as never, environment) : super.evaluate(statement, environment);
  }

  /** Evaluates a node with one of its children already evaluated. */
  evaluateWith<Node extends TemplateNode>(
    node: Node,
    child: keyof Node,
    value: Value,
    environment: Environment,
  ): Value {
    const scope = new Environment(environment);
    scope.variables.delete("namespace");
    scope.setVariable(BOUND_VALUE_NAME, value);
    const substituted = Object.assign(Object.create(Object.getPrototypeOf(node)), node, {
      [child]: { type: "Identifier", value: BOUND_VALUE_NAME },
    });
    return super.evaluate(substituted, scope);
  }

  renderBlock(body: readonly TemplateNode[], environment: Environment): string {
    let text = "";
    try {
      for (const node of body) {
        const value = this.evaluate(node, environment);
        if (value.type !== "NullValue") text += toPythonString(value);
      }
    } catch (error) {
      if (error instanceof LoopControl) error.output = text + error.output;
      throw error;
    }
    return text;
  }

  readCallArguments(nodes: readonly TemplateNode[], environment: Environment): CallArguments {
    const positional: Value[] = [];
    const named = new Map<string, Value>();
    for (const node of nodes) {
      const keyword = asNode(node, "KeywordArgumentExpression");
      const spread = asNode(node, "SpreadExpression");
      const spreadNamed = asNode(node, "KeywordSpreadExpression");
      if (keyword) named.set(keyword.key.value, this.evaluate(keyword.value, environment));
      else if (spread) positional.push(...iterate(this.evaluate(spread.argument, environment)));
      else if (spreadNamed)
        dictEntries(this.evaluate(spreadNamed.argument, environment))?.forEach((v, k) => named.set(k, v));
      else positional.push(this.evaluate(node, environment));
    }
    return { positional, named };
  }
}

type Evaluator<Type extends keyof Nodes> = (
  interpreter: TemplateInterpreter,
  node: Nodes[Type],
  scope: Environment,
) => Value;

const evaluators: { readonly [Type in keyof Nodes]?: Evaluator<Type> } = {
  Program: (interpreter, node, scope) => toValue(interpreter.renderBlock(node.body, scope)),
  Output: (interpreter, node, scope) => toValue(toPythonString(interpreter.evaluate(node.expression, scope))),
  If: (interpreter, node, scope) => {
    const branch = isTruthy(interpreter.evaluate(node.test, scope)) ? node.body : node.alternate;
    return toValue(interpreter.renderBlock(branch, scope));
  },
  Break: () => {
    throw new LoopControl(true);
  },
  Continue: () => {
    throw new LoopControl(false);
  },
  Identifier: (_, node, scope) => {
    const value = scope.lookupVariable(node.value);
    return isUndefined(value) ? createUndefined(`'${node.value}' is undefined`) : value;
  },
  BinaryExpression: evaluateBinary,
  MemberExpression: evaluateMember,
  CallExpression: evaluateCall,
  FilterExpression: evaluateFilterExpression,
  FilterStatement: evaluateFilterStatement,
  TestExpression: evaluateTest,
  For: evaluateLoop,
};

function evaluateBinary(interpreter: TemplateInterpreter, node: Nodes["BinaryExpression"], scope: Environment): Value {
  const left = interpreter.evaluate(node.left, scope);
  const operator = node.operator.value;
  if (operator === "and") return isTruthy(left) ? interpreter.evaluate(node.right, scope) : left;
  if (operator === "or") return isTruthy(left) ? left : interpreter.evaluate(node.right, scope);
  return applyOperator(operator, left, interpreter.evaluate(node.right, scope));
}

function evaluateMember(interpreter: TemplateInterpreter, node: Nodes["MemberExpression"], scope: Environment): Value {
  const object = interpreter.evaluate(node.object, scope);
  requireDefined(object);
  if (node.computed) {
    if (node.property.type === "SliceExpression") return interpreter.evaluateWith(node, "object", object, scope);
    return subscript(object, interpreter.evaluate(node.property, scope));
  }
  const name = asNode(node.property, "Identifier")?.value;
  // Attribute access finds a dictionary's method before an entry of that name; subscripts find the entry.
  const method = name !== undefined && object.type === "ObjectValue" ? dictMethods.get(name) : undefined;
  if (method) return functionValue((args) => method(dictEntries(object) ?? new Map(), args));
  if (name === undefined) return interpreter.evaluateWith(node, "object", object, scope);
  return subscript(object, toValue(name));
}

function evaluateCall(interpreter: TemplateInterpreter, node: Nodes["CallExpression"], scope: Environment): Value {
  const callee = asNode(node.callee, "MemberExpression");
  const name = callee && !callee.computed ? asNode(callee.property, "Identifier")?.value : undefined;
  if (callee && name !== undefined) {
    const object = interpreter.evaluate(callee.object, scope);
    requireDefined(object);
    const text = asString(object);
    const method = stringMethods.get(name);
    if (text !== undefined && method) return method(text, interpreter.readCallArguments(node.args, scope));
    const items = listItems(object);
    if (items && (name === "index" || name === "count"))
      return searchList(items, name, interpreter.readCallArguments(node.args, scope));
  }
  const fn = interpreter.evaluate(node.callee, scope);
  requireDefined(fn);
  return interpreter.evaluateWith(node, "callee", fn, scope);
}

function searchList(items: readonly Value[], name: "index" | "count", { positional }: CallArguments): Value {
  const matches = items.map(
    (item) => positional[0] !== undefined && isTruthy(applyOperator("==", item, positional[0])),
  );
  if (name === "count") return toValue(matches.filter(Boolean).length);
  const index = matches.indexOf(true);
  if (index < 0) throw new Error("the value is not in the list");
  return toValue(index);
}

function applyFilter(
  interpreter: TemplateInterpreter,
  value: Value,
  filterNode: TemplateNode,
  scope: Environment,
): Value | undefined {
  const withArguments = asNode(filterNode, "CallExpression");
  const name = asNode(withArguments ? withArguments.callee : filterNode, "Identifier")?.value ?? "";
  const filter = templateFilters.get(name);
  return filter?.(value, interpreter.readCallArguments(withArguments?.args ?? [], scope));
}

function evaluateFilterExpression(
  interpreter: TemplateInterpreter,
  node: Nodes["FilterExpression"],
  scope: Environment,
): Value {
  const operand = interpreter.evaluate(node.operand, scope);
  return (
    applyFilter(interpreter, operand, node.filter, scope) ?? interpreter.evaluateWith(node, "operand", operand, scope)
  );
}

function evaluateFilterStatement(
  interpreter: TemplateInterpreter,
  node: Nodes["FilterStatement"],
  scope: Environment,
): Value {
  const text = toValue(interpreter.renderBlock(node.body, new Environment(scope)));
  const filtered = applyFilter(interpreter, text, node.filter, scope);
  if (!filtered) throw new Error("the filter of a filter block is not known");
  return filtered;
}

function evaluateTest(interpreter: TemplateInterpreter, node: Nodes["TestExpression"], scope: Environment): Value {
  const operand = interpreter.evaluate(node.operand, scope);
  const check = templateTests.get(node.test.value);
  if (!check) throw new Error(`No test named '${node.test.value}'.`);
  return toValue(check(operand, undefined) !== node.negate);
}

function evaluateLoop(interpreter: TemplateInterpreter, node: Nodes["For"], scope: Environment): Value {
  const select = asNode(node.iterable, "SelectExpression");
  const all = iterate(interpreter.evaluate(select ? select.lhs : node.iterable, scope));
  const bind = (item: Value) => bindLoopVariable(node.loopvar, item, new Environment(scope));
  const items = select ? all.filter((item) => isTruthy(interpreter.evaluate(select.test, bind(item)))) : all;
  if (items.length === 0) return toValue(interpreter.renderBlock(node.defaultBlock, scope));
  let text = "";
  for (let i = 0; i < items.length; i++) {
    const iteration = bind(items[i]);
    iteration.setVariable("loop", createLoopVariables(items, i));
    const { output, isBreak } = runIteration(interpreter, node.body, iteration);
    text += output;
    if (isBreak) break;
  }
  return toValue(text);
}

function runIteration(interpreter: TemplateInterpreter, body: readonly TemplateNode[], scope: Environment) {
  try {
    return { output: interpreter.renderBlock(body, scope), isBreak: false };
  } catch (error) {
    if (error instanceof LoopControl) return { output: error.output, isBreak: error.isBreak };
    throw error;
  }
}

function bindLoopVariable(target: TemplateNode, item: Value, scope: Environment): Environment {
  const names = asNode(target, "TupleLiteral");
  if (!names) {
    scope.setVariable(asNode(target, "Identifier")?.value ?? "", item);
    return scope;
  }
  const parts = iterate(item);
  if (parts.length !== names.value.length) {
    throw new Error(`${parts.length} values cannot be unpacked into ${names.value.length} names`);
  }
  names.value.forEach((name, i) => bindLoopVariable(name, parts[i], scope));
  return scope;
}

function createLoopVariables(items: readonly Value[], index: number): Value {
  const count = items.length;
  const variables = dictValue(
    Object.entries({
      index: index + 1,
      index0: index,
      revindex: count - index,
      revindex0: count - index - 1,
      first: index === 0,
      last: index === count - 1,
      length: count,
    }).map(([name, content]) => [name, toValue(content)] as const),
  );
  const entries = dictEntries(variables);
  entries?.set("previtem", items[index - 1] ?? createUndefined("there is no previous item"));
  entries?.set("nextitem", items[index + 1] ?? createUndefined("there is no next item"));
  entries?.set(
    "cycle",
    functionValue((choices) => choices[index % choices.length]),
  );
  return variables;
}
