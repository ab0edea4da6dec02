import { Environment, Interpreter, type TemplateNode, type Value } from "@huggingface/jinja";

type ValueType =
  | "StringValue"
  | "IntegerValue"
  | "FloatValue"
  | "BooleanValue"
  | "NullValue"
  | "UndefinedValue"
  | "FunctionValue";

interface Content {
  StringValue: string;
  IntegerValue: number;
  FloatValue: number;
  BooleanValue: boolean;
  NullValue: null;
  UndefinedValue: undefined;
  FunctionValue: (args: Value[], scope: Environment) => Value;
}

const converter = new Environment();

/** Converts a JavaScript value to a template value. */
export function toValue(content: unknown): Value {
  // Only an environment converts values; it is shared, as creating one costs more than a conversion.
  converter.variables.clear();
  return converter.set("value", content);
}

/** Creates a template list. */
export function listValue(items: Value[]): Value {
  const list = toValue([]);
  const contents = listItems(list);
  contents?.push(...items);
  return list;
}

/** Creates a template tuple. */
export function tupleValue(items: Value[]): Value {
  const scope = new Environment();
  const literal: TemplateNode & { value: [] } = { type: "TupleLiteral", value: [] };
  const tuple = new Interpreter(scope).evaluate(literal, scope);
  listItems(tuple)?.push(...items);
  return tuple;
}

/** Creates a template dictionary. */
export function dictValue(entries: Iterable<readonly [string, Value]>): Value {
  const dict = toValue({});
  const contents = dictEntries(dict);
  for (const [key, value] of entries) contents?.set(key, value);
  return dict;
}

/** Creates a template function; named arguments are passed last, as a dictionary. */
export function functionValue(content: (args: Value[]) => Value): Value {
  const value = toValue(() => null);
  value.value = content;
  return value;
}

/** Creates a number: an integer unless an operand was a float. */
export function numberValue(content: number, float: boolean): Value {
  if (!float || !Number.isInteger(content)) return toValue(content);
  // The library distinguishes whole floats from integers by class, which a fractional value has.
  const value = toValue(0.5);
  value.value = content;
  return value;
}

/** Returns the content of a value of a plain type, or undefined. */
export function getContent<Type extends ValueType>(value: Value | undefined, type: Type): Content[Type] | undefined {
  return value?.type === type ? (value.value as Content[Type]) : undefined;
}

export function asString(value: Value | undefined): string | undefined {
  return getContent(value, "StringValue");
}

/** Returns the number in an integer, float or boolean, or undefined. */
export function asNumber(value: Value | undefined): number | undefined {
  if (value?.type === "BooleanValue") return value.value === true ? 1 : 0;
  return getContent(value, "IntegerValue") ?? getContent(value, "FloatValue");
}

/** Returns the items of a list or tuple, or undefined. */
export function listItems(value: Value | undefined): Value[] | undefined {
  return value?.type === "ArrayValue" || value?.type === "TupleValue" ? (value.value as Value[]) : undefined;
}

/** Returns the entries of a dictionary or namespace, or undefined. */
export function dictEntries(value: Value | undefined): Map<string, Value> | undefined {
  switch (value?.type) {
    case "ObjectValue":
    case "NamespaceValue":
    case "KeywordArgumentsValue":
      return value.value as Map<string, Value>;
    default:
      return undefined;
  }
}

export function isUndefined(value: Value | undefined): boolean {
  return value === undefined || value.type === "UndefinedValue";
}

export function isTruthy(value: Value): boolean {
  return value.__bool__().value;
}

/** Returns what loops iterate over: items, keys, characters; nothing for an undefined name. */
export function iterate(value: Value): Value[] {
  const items = listItems(value);
  if (items) return items;
  const entries = dictEntries(value);
  if (entries) return Array.from(entries.keys(), toValue);
  const text = asString(value);
  if (text !== undefined) return Array.from(text, toValue);
  if (isUndefined(value)) return [];
  throw new Error(`'${getPythonType(value)}' object is not iterable`);
}

/** Python's equality: by content; numbers only equal numbers. */
export function isEqual(a: Value, b: Value): boolean {
  const x = asNumber(a);
  const y = asNumber(b);
  if (x !== undefined || y !== undefined) return x === y;
  const xs = listItems(a);
  const ys = listItems(b);
  if (xs && ys) return a.type === b.type && xs.length === ys.length && xs.every((item, i) => isEqual(item, ys[i]));
  const left = dictEntries(a);
  const right = dictEntries(b);
  if (left && right) {
    return left.size === right.size && Array.from(left).every(([key, value]) => isEqualEntry(value, right.get(key)));
  }
  return a.type === b.type && a.value === b.value;
}

function isEqualEntry(value: Value, other: Value | undefined): boolean {
  return other !== undefined && isEqual(value, other);
}

/** Returns Python's name of a value's type, for messages. */
export function getPythonType(value: Value): string {
  switch (value.type) {
    case "StringValue":
      return "str";
    case "IntegerValue":
      return "int";
    case "FloatValue":
      return "float";
    case "BooleanValue":
      return "bool";
    case "NullValue":
      return "NoneType";
    case "ArrayValue":
      return "list";
    case "TupleValue":
      return "tuple";
    case "ObjectValue":
      return "dict";
    case "NamespaceValue":
      return "Namespace";
    case "UndefinedValue":
      return "Undefined";
    default:
      return "function";
  }
}
