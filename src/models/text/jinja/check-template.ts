import { FrameSymbols } from "./frame-symbols.js";
import { templateFilters, unsupportedFilters } from "./template-filters.js";
import { listOperands, listTargets, readsName } from "./template-nodes.js";
import { templateTests } from "./template-tests.js";
import { UnsupportedTemplate } from "./unsupported-template.js";
import type { Arguments, Block, Body, TemplateExpression, Macro, CallBlock, Statement } from "./template-ast.js";

/** What rendering needs to know of a checked template. */
export interface CheckedTemplate {
  readonly body: Body;
  readonly blocks: ReadonlyMap<string, Block>;
  /**
   * Names that a body with its own variables hides until it stores them; loops' conditions count as
   * bodies.
   */
  readonly hidden: ReadonlyMap<object, ReadonlySet<string>>;
  /** The special variables that the body of a macro or caller reads. */
  readonly specialNames: ReadonlyMap<Body, ReadonlySet<string>>;
  readonly marksGeneration: boolean;
}

/**
 * Checks what Jinja checks before rendering. @throws for invalid Jinja, and UnsupportedTemplate.
 */
export function checkTemplate(body: Body): CheckedTemplate {
  const checker = new TemplateChecker();
  checker.checkBlockBody(body, new FrameSymbols().declare(["self"]));
  return {
    body,
    blocks: checker.blocks,
    hidden: checker.hidden,
    specialNames: checker.specialNames,
    marksGeneration: checker.marksGeneration,
  };
}

/** Where a statement is. */
interface Place {
  readonly symbols: FrameSymbols;
  /** Whether break and continue are allowed. */
  readonly inLoop: boolean;
  /** Whether the statement is in a branch: unknown filters there fail only when they are used. */
  readonly isConditional: boolean;
}

class TemplateChecker {
  readonly blocks = new Map<string, Block>();
  readonly hidden = new Map<object, ReadonlySet<string>>();
  readonly specialNames = new Map<Body, ReadonlySet<string>>();
  marksGeneration = false;

  /** Checks a body that is rendered as a function: a template, block, macro or caller. */
  checkBlockBody(body: Body, symbols: FrameSymbols): void {
    symbols.analyze(body);
    this.hidden.set(body, symbols.hidden);
    this.checkBody(body, { symbols, inLoop: false, isConditional: false });
  }

  private checkBody(body: Body, place: Place): void {
    for (const node of body) this.checkStatement(node, place);
  }

  /** Checks a body with its own variables. */
  private checkInner(body: Body, { symbols, inLoop }: Place, names: readonly string[] = []): void {
    const inner = new FrameSymbols(symbols).declare(names).analyze(body);
    this.hidden.set(body, inner.hidden);
    this.checkBody(body, { symbols: inner, inLoop, isConditional: false });
  }

  private checkStatement(node: Statement, place: Place): void {
    switch (node.type) {
      case "Print":
        return this.checkExpressions(node.nodes, place.isConditional);
      case "Set":
        return this.checkExpressions([node.value], place.isConditional);
      case "SetBlock":
        this.checkInner(node.body, place);
        return this.checkExpressions(node.filter ? [node.filter] : [], false);
      case "If":
        for (const { test, body } of node.branches) {
          this.checkExpressions([test], true);
          this.checkBody(body, { ...place, isConditional: true });
        }
        return this.checkBody(node.otherwise, { ...place, isConditional: true });
      case "For":
        return this.checkLoop(node, place);
      case "Macro":
      case "CallBlock":
        return this.checkMacro(node, place);
      case "With":
        this.checkExpressions(node.values, place.isConditional);
        return this.checkInner(
          node.body,
          place,
          node.targets.flatMap((target) => listTargets(target).names),
        );
      case "FilterBlock":
        this.checkInner(node.body, place);
        return this.checkExpressions([node.filter], false);
      case "Autoescape":
        this.checkExpressions([node.value], place.isConditional);
        return this.checkInner(node.body, place);
      case "Generation":
        this.marksGeneration = true;
        // Transformers renders the block as the body of a caller.
        return this.checkBlockBody(node.body, this.declareSpecial(node.body, place.symbols));
      case "Block":
        if (this.blocks.has(node.name)) throw new SyntaxError(`block '${node.name}' defined twice`);
        this.blocks.set(node.name, node);
        return this.checkBlockBody(node.body, new FrameSymbols().declare(["self", "super"]));
      case "Break":
      case "Continue":
        if (!place.inLoop) throw new SyntaxError(`'${node.type.toLowerCase()}' outside loop`);
        return undefined;
      case "Text":
        return undefined;
    }
  }

  private checkLoop(node: Extract<Statement, { type: "For" }>, place: Place): void {
    if (storesLoop(node)) throw new SyntaxError("Can't assign to special loop variable in for-loop target");
    const { names } = listTargets(node.target);
    this.checkExpressions([node.iterable], place.isConditional);
    if (node.test) {
      const symbols = new FrameSymbols(place.symbols).declare(names).load(node.test);
      this.hidden.set(node.test, symbols.hidden);
      this.checkExpressions([node.test], false);
    }
    this.checkInner(node.body, { ...place, inLoop: true }, [...names, "loop"]);
    this.checkInner(node.otherwise, { ...place, inLoop: place.inLoop && !node.isRecursive });
  }

  private checkMacro(node: Macro | CallBlock, place: Place): void {
    const { parameters, defaults, body } = node;
    if (new Set(parameters).size < parameters.length)
      throw new SyntaxError("duplicate argument in a macro's definition");
    const caller = parameters.indexOf("caller");
    if (caller >= 0 && caller < parameters.length - defaults.length && readsName(body, "caller"))
      throw new SyntaxError('the special "caller" argument must be omitted or be given a default');
    const symbols = this.declareSpecial(body, place.symbols)
      .declare(parameters)
      .load(...defaults);
    this.checkExpressions(defaults, false);
    if (node.type === "CallBlock") this.checkExpressions([node.call], place.isConditional);
    this.checkBlockBody(body, symbols);
  }

  /** Creates the names of a body that is called, with the special variables that it reads. */
  private declareSpecial(body: Body, symbols: FrameSymbols): FrameSymbols {
    const special = ["caller", "kwargs", "varargs"].filter((name) => readsName(body, name));
    this.specialNames.set(body, new Set(special));
    return new FrameSymbols(symbols).declare(special);
  }

  private checkExpressions(nodes: readonly TemplateExpression[], isConditional: boolean): void {
    for (const node of nodes) {
      if (node.type === "Filter") this.checkFilter(node.name, node, isConditional);
      if (node.type === "Test" && !templateTests.has(node.name) && !isConditional)
        throw new SyntaxError(`No test named '${node.name}'.`);
      if (node.type === "Name" && node.name === "lipsum") throw new UnsupportedTemplate("the function lipsum");
      if (node.type === "Call" || node.type === "Filter" || node.type === "Test") checkKeywords(node);
      this.checkExpressions(listOperands(node), isConditional || node.type === "Condition");
    }
  }

  private checkFilter(name: string, { args }: Arguments, isConditional: boolean): void {
    const [mapped] = args;
    const inner =
      name === "map" && mapped?.type === "Constant" && typeof mapped.value === "string" ? [mapped.value] : [];
    const unsupported = [name, ...inner].find((each) => unsupportedFilters.has(each));
    if (unsupported !== undefined) throw new UnsupportedTemplate(`the filter ${unsupported}`);
    if (!templateFilters.has(name) && !isConditional) throw new SyntaxError(`No filter named '${name}'.`);
  }
}

function checkKeywords({ kwargs }: Arguments): void {
  const names = kwargs.map(([name]) => name);
  if (new Set(names).size < names.length) throw new SyntaxError("keyword argument repeated");
}

/** Whether the name loop is stored anywhere inside a loop. */
function storesLoop(node: Statement): boolean {
  const stores = (target: TemplateExpression) => listTargets(target).names.includes("loop");
  const inside = (...bodies: readonly Body[]) => bodies.some((body) => body.some(storesLoop));
  switch (node.type) {
    case "Set":
      return stores(node.target);
    case "SetBlock":
      return stores(node.target) || inside(node.body);
    case "For":
      return stores(node.target) || inside(node.body, node.otherwise);
    case "With":
    case "Macro":
    case "CallBlock":
    case "FilterBlock":
    case "Autoescape":
    case "Generation":
    case "Block":
      return inside(node.body);
    case "If":
      return inside(...node.branches.map(({ body }) => body), node.otherwise);
    default:
      return false;
  }
}
