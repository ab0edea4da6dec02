import type { TemplateNode } from "@huggingface/jinja";

/** Parsed nodes that the interpreter reads, by type. */
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

/** Narrows a node to a type, or returns null. */
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

/** Wraps each printed expression in an Output node, so that True, None and lists are printed as in Python. */
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
