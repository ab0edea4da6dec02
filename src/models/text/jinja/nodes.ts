import type { TemplateNode } from "@huggingface/jinja";

/** The nodes of a parsed template whose members the interpreter reads, by their type. */
export interface Nodes {
  Program: Block;
  If: Block & { test: TemplateNode; alternate: TemplateNode[] };
  For: Block & { loopvar: TemplateNode; iterable: TemplateNode; defaultBlock: TemplateNode[] };
  Break: TemplateNode;
  Continue: TemplateNode;
  FilterStatement: Block & { filter: TemplateNode };
  Output: TemplateNode & { expression: TemplateNode };
  Identifier: TemplateNode & { value: string };
  TupleLiteral: TemplateNode & { value: TemplateNode[] };
  SelectExpression: TemplateNode & { lhs: TemplateNode; test: TemplateNode };
  MemberExpression: TemplateNode & { object: TemplateNode; property: TemplateNode; computed: boolean };
  CallExpression: TemplateNode & { callee: TemplateNode; args: TemplateNode[] };
  BinaryExpression: TemplateNode & { operator: { value: string }; left: TemplateNode; right: TemplateNode };
  FilterExpression: TemplateNode & { operand: TemplateNode; filter: TemplateNode };
  TestExpression: TemplateNode & { operand: TemplateNode; negate: boolean; test: TemplateNode & { value: string } };
  KeywordArgumentExpression: TemplateNode & { key: { value: string }; value: TemplateNode };
  SpreadExpression: TemplateNode & { argument: TemplateNode };
  KeywordSpreadExpression: TemplateNode & { argument: TemplateNode };
}

type Block = TemplateNode & { body: TemplateNode[] };

/** The node as one of the given type, null when it is another. */
export function asNode<Type extends keyof Nodes>(node: TemplateNode, type: Type): Nodes[Type] | null {
  return node.type === type ? (node as Nodes[Type]) : null;
}

const statements = new Set([
  "Set",
  "If",
  "For",
  "Macro",
  "CallStatement",
  "FilterStatement",
  "Break",
  "Continue",
  "Comment",
  "StringLiteral",
]);

/**
 * Wraps each expression that a template prints in an Output node, so that printing is a step of its own: the
 * interpreter then writes True, None and lists as Python does.
 */
export function markOutputs(body: TemplateNode[]): void {
  body.forEach((node, index) => {
    if (!statements.has(node.type)) {
      const output: Nodes["Output"] = Object.create(Object.getPrototypeOf(node));
      body[index] = Object.assign(output, { type: "Output", expression: node });
    }
    for (const part of ["body", "alternate", "defaultBlock"] as const) {
      const block: unknown = Reflect.get(node, part);
      if (statements.has(node.type) && Array.isArray(block)) markOutputs(block as TemplateNode[]);
    }
  });
}
