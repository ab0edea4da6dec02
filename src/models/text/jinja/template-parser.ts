import { ExpressionParser } from "./expression-parser.js";
import { tokenize } from "./lexer.js";
import type { Body, TemplateExpression, Signature, Statement } from "./template-ast.js";
import { UnsupportedTemplate } from "./unsupported-template.js";

/** Tags that need other templates, which chat templates do not have. */
const loaderTags = new Set(["extends", "include", "import", "from"]);

/** Parses a template. @throws for invalid Jinja, and UnsupportedTemplate. */
export function parseTemplate(source: string): Body {
  return new TemplateParser(tokenize(source)).parse();
}

class TemplateParser extends ExpressionParser {
  /** End tags of the open blocks. */
  private readonly endTags: (readonly string[])[] = [];
  private readonly openTags: string[] = [];

  parse(): Body {
    return this.parseBody(null);
  }

  /** Parses up to one of the end tags, whose name is the current token then, or to the end. */
  private parseBody(ends: readonly string[] | null): Body {
    const body: Statement[] = [];
    if (ends) this.endTags.push(ends);
    for (;;) {
      const { type, text } = this.current;
      if (type === "eof") break;
      this.next();
      if (type === "data") {
        body.push({ type: "Text", text });
      } else if (type === "variable_begin") {
        body.push({ type: "Print", nodes: [this.parseTuple()] });
        this.expect("variable_end");
      } else {
        if (ends?.some((end) => this.isName(end))) {
          this.endTags.pop();
          return body;
        }
        body.push(this.parseStatement());
        this.expect("block_end");
      }
    }
    if (ends) this.failAtEnd();
    return body;
  }

  /**
   * Parses the body of the current tag, whose end follows, up to an end tag, and returns the end
   * tag's name.
   */
  private parseBlockBody(...ends: string[]): { body: Body; end: string } {
    this.skip(":");
    this.expect("block_end");
    const body = this.parseBody(ends);
    return { body, end: this.next().text };
  }

  private parseStatement(): Statement {
    const token = this.current;
    if (token.type !== "name") this.fail("tag name expected");
    this.openTags.push(token.text);
    const parse = this.statements[token.text];
    if (!Object.hasOwn(this.statements, token.text)) {
      this.openTags.pop();
      if (loaderTags.has(token.text)) throw new UnsupportedTemplate(`the tag {% ${token.text} %}`);
      return this.failAtTag(token.text);
    }
    this.next();
    const statement = parse();
    this.openTags.pop();
    return statement;
  }

  private readonly statements: Readonly<Record<string, () => Statement>> = {
    for: () => this.parseFor(),
    if: () => this.parseIf(),
    set: () => this.parseSet(),
    with: () => this.parseWith(),
    macro: () => {
      const name = this.parseTargetName();
      const signature = this.parseSignature();
      return { type: "Macro", name, ...signature, body: this.parseBlockBody("endmacro").body };
    },
    call: () => {
      const signature = this.current.type === "(" ? this.parseSignature() : { parameters: [], defaults: [] };
      const call = this.parseExpression();
      if (call.type !== "Call") return this.fail("expected call");
      return { type: "CallBlock", call, ...signature, body: this.parseBlockBody("endcall").body };
    },
    filter: () => {
      const filter = this.parseFilter(null, true);
      if (filter === null) return this.fail("expected a filter");
      return { type: "FilterBlock", filter, body: this.parseBlockBody("endfilter").body };
    },
    block: () => this.parseBlock(),
    autoescape: () => {
      const value = this.parseExpression();
      return { type: "Autoescape", value, body: this.parseBlockBody("endautoescape").body };
    },
    print: () => {
      const nodes: TemplateExpression[] = [];
      while (this.current.type !== "block_end") {
        if (nodes.length > 0) this.expect(",");
        nodes.push(this.parseExpression());
      }
      return { type: "Print", nodes };
    },
    generation: () => ({ type: "Generation", body: this.parseBlockBody("endgeneration").body }),
    break: () => ({ type: "Break" }),
    continue: () => ({ type: "Continue" }),
  };

  private parseFor(): Statement {
    const target = this.parseTarget({ endName: "in" });
    this.expectName("in");
    const iterable = this.parseTuple({ withConditions: false, endName: "recursive" });
    const test = this.skipName("if") ? this.parseExpression() : null;
    const isRecursive = this.skipName("recursive");
    const { body, end } = this.parseBlockBody("endfor", "else");
    const otherwise = end === "else" ? this.parseBlockBody("endfor").body : [];
    return { type: "For", target, iterable, test, isRecursive, body, otherwise };
  }

  private parseIf(): Statement {
    const branches: { test: TemplateExpression; body: Body }[] = [];
    for (;;) {
      const test = this.parseTuple({ withConditions: false });
      const { body, end } = this.parseBlockBody("elif", "else", "endif");
      branches.push({ test, body });
      if (end === "elif") continue;
      return { type: "If", branches, otherwise: end === "else" ? this.parseBlockBody("endif").body : [] };
    }
  }

  private parseSet(): Statement {
    const target = this.parseTarget({ withNamespaces: true });
    if (this.skip("=")) return { type: "Set", target, value: this.parseTuple() };
    const filter = this.parseFilter(null);
    return { type: "SetBlock", target, filter, body: this.parseBlockBody("endset").body };
  }

  private parseWith(): Statement {
    const targets: TemplateExpression[] = [];
    const values: TemplateExpression[] = [];
    while (this.current.type !== "block_end") {
      if (targets.length > 0) this.expect(",");
      targets.push(this.parseTarget());
      this.expect("=");
      values.push(this.parseExpression());
    }
    return { type: "With", targets, values, body: this.parseBlockBody("endwith").body };
  }

  private parseBlock(): Statement {
    const name = this.expect("name").text;
    const isScoped = this.skipName("scoped");
    const isRequired = this.skipName("required");
    if (this.current.type === "-") this.fail("Block names in Jinja have to be valid Python identifiers");
    const { body } = this.parseBlockBody("endblock");
    if (isRequired && !body.every((node) => node.type === "Text" && node.text.trim() === ""))
      this.fail("Required blocks can only contain comments or whitespace");
    if (isRequired) this.fail(`Required block '${name}' not found`);
    this.skipName(name);
    return { type: "Block", name, isScoped, body };
  }

  private parseSignature(): Signature {
    const parameters: string[] = [];
    const defaults: TemplateExpression[] = [];
    this.expect("(");
    while (this.current.type !== ")") {
      if (parameters.length > 0) this.expect(",");
      parameters.push(this.parseTargetName());
      if (this.skip("=")) defaults.push(this.parseExpression());
      else if (defaults.length > 0) this.fail("non-default argument follows default argument");
    }
    this.expect(")");
    return { parameters, defaults };
  }

  private parseTargetName(): string {
    const name = this.expect("name").text;
    if (!canAssign({ type: "Name", name })) this.fail("can't assign to a constant");
    return name;
  }

  private parseTarget(options: { endName?: string; withNamespaces?: boolean } = {}): TemplateExpression {
    const target = this.parseTuple({ isTarget: true, ...options });
    if (!canAssign(target)) this.fail(`can't assign to '${target.type.toLowerCase()}'`);
    return target;
  }

  private failAtTag(name: string): never {
    this.fail(`Encountered unknown tag '${name}'.${this.describeOpenTags()}`);
  }

  private failAtEnd(): never {
    this.fail(`Unexpected end of template.${this.describeOpenTags()}`);
  }

  private describeOpenTags(): string {
    const expected = this.endTags
      .at(-1)
      ?.map((name) => `'${name}'`)
      .join(" or ");
    const looking = expected === undefined ? "" : ` Jinja was looking for the following tags: ${expected}.`;
    const open = this.openTags.at(-1);
    return looking + (open === undefined ? "" : ` The innermost block that needs to be closed is '${open}'.`);
  }
}

const reserved = new Set(["true", "false", "none", "True", "False", "None"]);

function canAssign(target: TemplateExpression): boolean {
  if (target.type === "Tuple") return target.items.every(canAssign);
  return target.type === "NamespaceReference" || (target.type === "Name" && !reserved.has(target.name));
}
