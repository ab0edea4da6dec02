import { Environment, Interpreter, type TemplateNode, type Value } from "@huggingface/jinja";

import { templateFilters } from "./filters.js";
import { type Nodes, asNode } from "./nodes.js";
import { missing, operate, requireDefined, subscript } from "./operators.js";
import { pythonString } from "./python-text.js";
import { type CallArguments, stringMethods } from "./string-methods.js";
import { templateTests } from "./tests.js";
import {
  dictEntries,
  dictValue,
  functionValue,
  isTrue,
  isUndefined,
  iterate,
  listItems,
  listValue,
  stringOf,
  toValue,
  tupleValue,
} from "./values.js";

/** A break or continue on its way to its loop, with what the iteration printed before it. */
class LoopControl extends Error {
  printed = "";

  constructor(readonly ends: boolean) {
    super("break and continue belong into a loop");
  }
}

type DictMethod = (entries: ReadonlyMap<string, Value>, args: Value[]) => Value;

/** A dictionary's methods, by its entries. */
const dictMethods: ReadonlyMap<string, DictMethod> = new Map<string, DictMethod>([
  ["get", (entries, [key, fallback]) => entries.get(stringOf(key) ?? "") ?? fallback ?? toValue(null)],
  ["items", (entries) => listValue(Array.from(entries, ([key, value]) => tupleValue([toValue(key), value])))],
  ["keys", (entries) => listValue(Array.from(entries.keys(), toValue))],
  ["values", (entries) => listValue(Array.from(entries.values()))],
  ["copy", (entries) => dictValue(entries)],
]);
const heldName = "\u0000held";

/**
 * Runs chat templates with Python's semantics where @huggingface/jinja goes its own way: undefined values raise when
 * they are used, str(), equality, string methods, filters and loop scopes are Python's and Jinja's. Everything else is
 * the library's.
 */
export class TemplateInterpreter extends Interpreter {
  override evaluate(statement: TemplateNode | undefined, environment: Environment): Value {
    if (!statement) return super.evaluate(statement, environment);
    const evaluator = evaluators[statement.type as keyof Nodes] as Evaluator<never> | undefined;
    return evaluator ? evaluator(this, statement as never, environment) : super.evaluate(statement, environment);
  }

  /** The library's own evaluation of a node, with one of its children already evaluated. */
  evaluateWith<Node extends TemplateNode>(
    node: Node,
    child: keyof Node,
    value: Value,
    environment: Environment,
  ): Value {
    const scope = new Environment(environment);
    scope.variables.delete("namespace");
    scope.setVariable(heldName, value);
    const held = Object.assign(Object.create(Object.getPrototypeOf(node)), node, {
      [child]: { type: "Identifier", value: heldName },
    });
    return super.evaluate(held, scope);
  }

  block(body: readonly TemplateNode[], environment: Environment): string {
    let text = "";
    try {
      for (const node of body) {
        const value = this.evaluate(node, environment);
        if (value.type !== "NullValue") text += pythonString(value);
      }
    } catch (error) {
      if (error instanceof LoopControl) error.printed = text + error.printed;
      throw error;
    }
    return text;
  }

  arguments(nodes: readonly TemplateNode[], environment: Environment): CallArguments {
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

type Evaluator<Type extends keyof Nodes> = (run: TemplateInterpreter, node: Nodes[Type], scope: Environment) => Value;

const evaluators: { readonly [Type in keyof Nodes]?: Evaluator<Type> } = {
  Program: (run, node, scope) => toValue(run.block(node.body, scope)),
  Output: (run, node, scope) => toValue(pythonString(run.evaluate(node.expression, scope))),
  If: (run, node, scope) => {
    const branch = isTrue(run.evaluate(node.test, scope)) ? node.body : node.alternate;
    return toValue(run.block(branch, scope));
  },
  Break: () => {
    throw new LoopControl(true);
  },
  Continue: () => {
    throw new LoopControl(false);
  },
  Identifier: (_, node, scope) => {
    const value = scope.lookupVariable(node.value);
    return isUndefined(value) ? missing(`'${node.value}' is undefined`) : value;
  },
  BinaryExpression: binary,
  MemberExpression: member,
  CallExpression: call,
  FilterExpression: filterExpression,
  FilterStatement: filterStatement,
  TestExpression: test,
  For: loop,
};

function binary(run: TemplateInterpreter, node: Nodes["BinaryExpression"], scope: Environment): Value {
  const left = run.evaluate(node.left, scope);
  const operator = node.operator.value;
  if (operator === "and") return isTrue(left) ? run.evaluate(node.right, scope) : left;
  if (operator === "or") return isTrue(left) ? left : run.evaluate(node.right, scope);
  return operate(operator, left, run.evaluate(node.right, scope));
}

function member(run: TemplateInterpreter, node: Nodes["MemberExpression"], scope: Environment): Value {
  const object = run.evaluate(node.object, scope);
  requireDefined(object);
  if (node.computed) {
    if (node.property.type === "SliceExpression") return run.evaluateWith(node, "object", object, scope);
    return subscript(object, run.evaluate(node.property, scope));
  }
  const name = asNode(node.property, "Identifier")?.value;
  // A dot finds a dictionary's method before its entry of that name, brackets find the entry.
  const method = name !== undefined && object.type === "ObjectValue" ? dictMethods.get(name) : undefined;
  if (method) return functionValue((args) => method(dictEntries(object) ?? new Map(), args));
  if (name === undefined) return run.evaluateWith(node, "object", object, scope);
  return subscript(object, toValue(name));
}

function call(run: TemplateInterpreter, node: Nodes["CallExpression"], scope: Environment): Value {
  const callee = asNode(node.callee, "MemberExpression");
  const name = callee && !callee.computed ? asNode(callee.property, "Identifier")?.value : undefined;
  if (callee && name !== undefined) {
    const object = run.evaluate(callee.object, scope);
    requireDefined(object);
    const text = stringOf(object);
    const method = stringMethods.get(name);
    if (text !== undefined && method) return method(text, run.arguments(node.args, scope));
    const items = listItems(object);
    if (items && (name === "index" || name === "count")) return search(items, name, run.arguments(node.args, scope));
  }
  const fn = run.evaluate(node.callee, scope);
  requireDefined(fn);
  return run.evaluateWith(node, "callee", fn, scope);
}

function search(items: readonly Value[], name: "index" | "count", { positional }: CallArguments): Value {
  const matches = items.map((item) => positional[0] !== undefined && isTrue(operate("==", item, positional[0])));
  if (name === "count") return toValue(matches.filter(Boolean).length);
  const index = matches.indexOf(true);
  if (index < 0) throw new Error("the value is not in the list");
  return toValue(index);
}

function applyFilter(
  run: TemplateInterpreter,
  value: Value,
  filterNode: TemplateNode,
  scope: Environment,
): Value | undefined {
  const withArguments = asNode(filterNode, "CallExpression");
  const name = asNode(withArguments ? withArguments.callee : filterNode, "Identifier")?.value ?? "";
  const filter = templateFilters.get(name);
  return filter?.(value, run.arguments(withArguments?.args ?? [], scope));
}

function filterExpression(run: TemplateInterpreter, node: Nodes["FilterExpression"], scope: Environment): Value {
  const operand = run.evaluate(node.operand, scope);
  return applyFilter(run, operand, node.filter, scope) ?? run.evaluateWith(node, "operand", operand, scope);
}

function filterStatement(run: TemplateInterpreter, node: Nodes["FilterStatement"], scope: Environment): Value {
  const text = toValue(run.block(node.body, new Environment(scope)));
  const filtered = applyFilter(run, text, node.filter, scope);
  if (!filtered) throw new Error("the filter of a filter block is not known");
  return filtered;
}

function test(run: TemplateInterpreter, node: Nodes["TestExpression"], scope: Environment): Value {
  const operand = run.evaluate(node.operand, scope);
  const check = templateTests.get(node.test.value);
  if (!check) throw new Error(`No test named '${node.test.value}'.`);
  return toValue(check(operand, undefined) !== node.negate);
}

function loop(run: TemplateInterpreter, node: Nodes["For"], scope: Environment): Value {
  const select = asNode(node.iterable, "SelectExpression");
  const all = iterate(run.evaluate(select ? select.lhs : node.iterable, scope));
  const bind = (item: Value) => bindLoopVariable(node.loopvar, item, new Environment(scope));
  const items = select ? all.filter((item) => isTrue(run.evaluate(select.test, bind(item)))) : all;
  if (items.length === 0) return toValue(run.block(node.defaultBlock, scope));
  let text = "";
  for (let i = 0; i < items.length; i++) {
    const iteration = bind(items[i]);
    iteration.setVariable("loop", loopVariables(items, i));
    const { printed, ends } = runIteration(run, node.body, iteration);
    text += printed;
    if (ends) break;
  }
  return toValue(text);
}

function runIteration(run: TemplateInterpreter, body: readonly TemplateNode[], scope: Environment) {
  try {
    return { printed: run.block(body, scope), ends: false };
  } catch (error) {
    if (error instanceof LoopControl) return { printed: error.printed, ends: error.ends };
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

function loopVariables(items: readonly Value[], index: number): Value {
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
  entries?.set("previtem", items[index - 1] ?? missing("there is no previous item"));
  entries?.set("nextitem", items[index + 1] ?? missing("there is no next item"));
  entries?.set(
    "cycle",
    functionValue((choices) => choices[index % choices.length]),
  );
  return variables;
}
