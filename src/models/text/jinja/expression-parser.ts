import { Float, type Value } from "./values.js";
import type { Arguments, TemplateExpression, Filter } from "./template-ast.js";
import type { Token } from "./lexer.js";

interface TupleOptions {
  /** Only names and literals, as in targets. */
  readonly isTarget?: boolean;
  readonly withConditions?: boolean;
  readonly isParenthesized?: boolean;
  readonly withNamespaces?: boolean;
  /** A name that ends the tuple. */
  readonly endName?: string;
}

const comparisons = new Set(["==", "!=", "<", "<=", ">", ">="]);
const constants: ReadonlyMap<string, Value> = new Map<string, Value>([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
]);
const noArguments: Arguments = { args: [], kwargs: [], spreadArgs: null, spreadKwargs: null };

/** Parses Jinja's expressions as jinja2's parser does. */
export class ExpressionParser {
  private index = 0;

  constructor(private readonly tokens: readonly Token[]) {}

  protected get current(): Token {
    return this.tokens[this.index];
  }

  protected next(): Token {
    const token = this.current;
    if (token.type !== "eof") this.index++;
    return token;
  }

  private look(): Token {
    return this.tokens[Math.min(this.index + 1, this.tokens.length - 1)];
  }

  protected isName(name: string, token = this.current): boolean {
    return token.type === "name" && token.text === name;
  }

  protected skipName(name: string): boolean {
    const matches = this.isName(name);
    if (matches) this.next();
    return matches;
  }

  protected skip(type: string): boolean {
    const matches = this.current.type === type;
    if (matches) this.next();
    return matches;
  }

  protected expect(type: string): Token {
    if (this.current.type !== type) this.fail(`expected token '${describe(type)}', got '${this.describeCurrent()}'`);
    return this.next();
  }

  protected expectName(name: string): void {
    if (!this.skipName(name)) this.fail(`expected token '${name}', got '${this.describeCurrent()}'`);
  }

  protected describeCurrent(): string {
    return this.current.type === "name" ? this.current.text : describe(this.current.type);
  }

  protected fail(message: string, line = this.current.line): never {
    throw new SyntaxError(`${message} (line ${line})`);
  }

  protected parseExpression(withConditions = true): TemplateExpression {
    if (!withConditions) return this.parseOr();
    let then = this.parseOr();
    while (this.skipName("if")) {
      const test = this.parseOr();
      const otherwise = this.skipName("else") ? this.parseExpression() : null;
      then = { type: "Condition", test, value: then, otherwise };
    }
    return then;
  }

  private parseOr(): TemplateExpression {
    let left = this.parseAnd();
    while (this.skipName("or")) left = { type: "Or", left, right: this.parseAnd() };
    return left;
  }

  private parseAnd(): TemplateExpression {
    let left = this.parseNot();
    while (this.skipName("and")) left = { type: "And", left, right: this.parseNot() };
    return left;
  }

  private parseNot(): TemplateExpression {
    return this.skipName("not") ? { type: "Unary", operator: "not", node: this.parseNot() } : this.parseCompare();
  }

  private parseCompare(): TemplateExpression {
    const first = this.parseSum();
    const operands: (readonly [string, TemplateExpression])[] = [];
    for (;;) {
      if (comparisons.has(this.current.type)) {
        operands.push([this.next().text, this.parseSum()]);
      } else if (this.skipName("in")) {
        operands.push(["in", this.parseSum()]);
      } else if (this.isName("not") && this.isName("in", this.look())) {
        this.next();
        this.next();
        operands.push(["not in", this.parseSum()]);
      } else {
        return operands.length === 0 ? first : { type: "Compare", first, operands };
      }
    }
  }

  private parseSum(): TemplateExpression {
    return this.parseBinary(["+", "-"], () => this.parseConcat());
  }

  private parseConcat(): TemplateExpression {
    const nodes = [this.parseProduct()];
    while (this.skip("~")) nodes.push(this.parseProduct());
    return nodes.length === 1 ? nodes[0] : { type: "Concat", nodes };
  }

  private parseProduct(): TemplateExpression {
    // Jinja's power operator nests to the left.
    return this.parseBinary(["*", "/", "//", "%"], () => this.parseBinary(["**"], () => this.parseUnary()));
  }

  private parseBinary(operators: readonly string[], parseOperand: () => TemplateExpression): TemplateExpression {
    let left = parseOperand();
    while (operators.includes(this.current.type)) {
      const operator = this.next().type;
      left = { type: "Binary", operator, left, right: parseOperand() };
    }
    return left;
  }

  private parseUnary(withFilter = true): TemplateExpression {
    const { type } = this.current;
    let node: TemplateExpression;
    if (type === "-" || type === "+") {
      this.next();
      node = { type: "Unary", operator: type, node: this.parseUnary(false) };
    } else {
      node = this.parsePrimary();
    }
    node = this.parsePostfix(node);
    return withFilter ? this.parseFilters(node) : node;
  }

  private parsePrimary(withNamespaces = false): TemplateExpression {
    const token = this.current;
    switch (token.type) {
      case "name":
        this.next();
        return this.parseName(token.text, withNamespaces);
      case "string": {
        let text = "";
        while (this.current.type === "string") text += String(this.next().value);
        return { type: "Constant", value: text };
      }
      case "integer":
        this.next();
        return { type: "Constant", value: token.value ?? 0 };
      case "float":
        this.next();
        return { type: "Constant", value: new Float(Number(token.text.replaceAll("_", ""))) };
      case "(": {
        this.next();
        const node = this.parseTuple({ isParenthesized: true });
        this.expect(")");
        return node;
      }
      case "[":
        return { type: "List", items: this.parseItems("[", "]", () => this.parseExpression()) };
      case "{":
        return { type: "Dict", items: this.parseItems("{", "}", () => this.parsePair()) };
      default:
        return this.fail(`unexpected '${this.describeCurrent()}'`);
    }
  }

  private parseName(name: string, withNamespaces: boolean): TemplateExpression {
    const constant = constants.get(name);
    if (constant !== undefined) return { type: "Constant", value: constant };
    if (withNamespaces && this.skip("."))
      return { type: "NamespaceReference", name, attribute: this.expect("name").text };
    return { type: "Name", name };
  }

  /** Parses expressions that commas separate, or one without a comma. */
  protected parseTuple(options: TupleOptions = {}): TemplateExpression {
    const { isTarget = false, withConditions = true, isParenthesized = false, endName } = options;
    const items: TemplateExpression[] = [];
    let isTuple = false;
    for (;;) {
      if (items.length > 0) this.expect(",");
      if (["variable_end", "block_end", ")"].includes(this.current.type)) break;
      if (endName !== undefined && this.isName(endName)) break;
      items.push(isTarget ? this.parsePrimary(options.withNamespaces) : this.parseExpression(withConditions));
      if (this.current.type !== ",") break;
      isTuple = true;
    }
    if (!isTuple && items.length > 0) return items[0];
    if (!isTuple && !isParenthesized) this.fail(`Expected an expression, got '${this.describeCurrent()}'`);
    return { type: "Tuple", items };
  }

  private parseItems<Item>(open: string, close: string, parse: () => Item): Item[] {
    this.expect(open);
    const items: Item[] = [];
    while (this.current.type !== close) {
      if (items.length > 0) this.expect(",");
      if (this.current.type === close) break;
      items.push(parse());
    }
    this.expect(close);
    return items;
  }

  private parsePair(): readonly [TemplateExpression, TemplateExpression] {
    const key = this.parseExpression();
    this.expect(":");
    return [key, this.parseExpression()];
  }

  private parsePostfix(start: TemplateExpression): TemplateExpression {
    let node = start;
    for (;;) {
      if (this.current.type === ".") node = this.parseMember(node);
      else if (this.current.type === "[") node = this.parseSubscript(node);
      else if (this.current.type === "(") node = { type: "Call", callee: node, ...this.parseArguments() };
      else return node;
    }
  }

  private parseFilters(start: TemplateExpression): TemplateExpression {
    let node = start;
    for (;;) {
      if (this.current.type === "|") node = this.parseFilter(node) ?? node;
      else if (this.isName("is")) node = this.parseTest(node);
      else if (this.current.type === "(") node = { type: "Call", callee: node, ...this.parseArguments() };
      else return node;
    }
  }

  private parseMember(node: TemplateExpression): TemplateExpression {
    this.expect(".");
    const token = this.next();
    if (token.type === "name") return { type: "Attribute", node, name: token.text };
    if (token.type !== "integer") this.fail("expected name or number", token.line);
    return { type: "Item", node, index: { type: "Constant", value: token.value ?? 0 } };
  }

  private parseSubscript(node: TemplateExpression): TemplateExpression {
    this.expect("[");
    const items: TemplateExpression[] = [];
    while (this.current.type !== "]") {
      if (items.length > 0) this.expect(",");
      items.push(this.parseIndex());
    }
    this.expect("]");
    return { type: "Item", node, index: items.length === 1 ? items[0] : { type: "Tuple", items } };
  }

  private parseIndex(): TemplateExpression {
    const isEnd = () => this.current.type === ":" || this.current.type === "]" || this.current.type === ",";
    const start = this.current.type === ":" ? null : this.parseExpression();
    if (start !== null && this.current.type !== ":") return start;
    this.expect(":");
    const stop = isEnd() ? null : this.parseExpression();
    const step = this.skip(":") && !isEnd() ? this.parseExpression() : null;
    return { type: "Slice", bounds: [start, stop, step] };
  }

  private parseArguments(): Arguments {
    const args: TemplateExpression[] = [];
    const kwargs: (readonly [string, TemplateExpression])[] = [];
    let spreadArgs: TemplateExpression | null = null;
    let spreadKwargs: TemplateExpression | null = null;
    const { line } = this.expect("(");
    const ensure = (condition: boolean) => {
      if (!condition) this.fail("invalid syntax for function call expression", line);
    };
    for (let isFirst = true; this.current.type !== ")"; isFirst = false) {
      if (!isFirst) this.expect(",");
      if (!isFirst && this.current.type === ")") break;
      if (this.skip("*")) {
        ensure(spreadArgs === null && spreadKwargs === null);
        spreadArgs = this.parseExpression();
      } else if (this.skip("**")) {
        ensure(spreadKwargs === null);
        spreadKwargs = this.parseExpression();
      } else if (this.current.type === "name" && this.look().type === "=") {
        ensure(spreadKwargs === null);
        const name = this.next().text;
        this.next();
        kwargs.push([name, this.parseExpression()]);
      } else {
        ensure(spreadArgs === null && spreadKwargs === null && kwargs.length === 0);
        args.push(this.parseExpression());
      }
    }
    this.expect(")");
    return { args, kwargs, spreadArgs, spreadKwargs };
  }

  private parseDottedName(): string {
    let name = this.expect("name").text;
    while (this.skip(".")) name += `.${this.expect("name").text}`;
    return name;
  }

  /** Parses filters; `startsInline` is for `{% filter %}`, whose first filter has no bar. */
  protected parseFilter(start: TemplateExpression | null, startsInline = false): Filter | null {
    let node: Filter | null = null;
    for (let isInline = startsInline; this.current.type === "|" || isInline; isInline = false) {
      if (!isInline) this.next();
      const name = this.parseDottedName();
      node = {
        type: "Filter",
        node: node ?? start,
        name,
        ...(this.current.type === "(" ? this.parseArguments() : noArguments),
      };
    }
    return node;
  }

  private parseTest(node: TemplateExpression): TemplateExpression {
    this.next();
    const isNegated = this.skipName("not");
    const test: TemplateExpression = { type: "Test", node, name: this.parseDottedName(), ...this.parseTestArguments() };
    return isNegated ? { type: "Unary", operator: "not", node: test } : test;
  }

  private parseTestArguments(): Arguments {
    if (this.current.type === "(") return this.parseArguments();
    const isArgument = ["name", "string", "integer", "float", "[", "{"].includes(this.current.type);
    if (!isArgument || ["else", "or", "and"].some((name) => this.isName(name))) return noArguments;
    if (this.isName("is")) this.fail("You cannot chain multiple tests with is");
    return { ...noArguments, args: [this.parsePostfix(this.parsePrimary())] };
  }
}

function describe(type: string): string {
  const names: Readonly<Record<string, string>> = {
    block_begin: "begin of statement block",
    block_end: "end of statement block",
    variable_begin: "begin of print statement",
    variable_end: "end of print statement",
    data: "template data / text",
    eof: "end of template",
  };
  return names[type] ?? type;
}
