import type { Value } from "./values.js";

// The nodes of a parsed template, after jinja2.nodes.

export interface Arguments {
  readonly args: readonly Expression[];
  readonly kwargs: readonly (readonly [name: string, value: Expression])[];
  readonly spreadArgs: Expression | null;
  readonly spreadKwargs: Expression | null;
}

export type Name = { readonly type: "Name"; readonly name: string };
export type Call = { readonly type: "Call"; readonly callee: Expression } & Arguments;
/** A filter; the node of `{% filter %}` and `{% set %}` blocks is their body's text. */
export type Filter = { readonly type: "Filter"; readonly node: Expression | null; readonly name: string } & Arguments;
export type Test = { readonly type: "Test"; readonly node: Expression; readonly name: string } & Arguments;
export type NamespaceReference = {
  readonly type: "NamespaceReference";
  readonly name: string;
  readonly attribute: string;
};

export type Expression =
  | Name
  | Call
  | Filter
  | Test
  | NamespaceReference
  | { readonly type: "Constant"; readonly value: Value }
  | { readonly type: "List" | "Tuple"; readonly items: readonly Expression[] }
  | { readonly type: "Dict"; readonly items: readonly (readonly [key: Expression, value: Expression])[] }
  | { readonly type: "Attribute"; readonly node: Expression; readonly name: string }
  | { readonly type: "Item"; readonly node: Expression; readonly index: Expression }
  | { readonly type: "Slice"; readonly bounds: readonly (Expression | null)[] }
  | { readonly type: "Unary"; readonly operator: "not" | "-" | "+"; readonly node: Expression }
  | { readonly type: "Binary"; readonly operator: string; readonly left: Expression; readonly right: Expression }
  | { readonly type: "And" | "Or"; readonly left: Expression; readonly right: Expression }
  | {
      readonly type: "Compare";
      readonly first: Expression;
      readonly operands: readonly (readonly [operator: string, value: Expression])[];
    }
  | { readonly type: "Concat"; readonly nodes: readonly Expression[] }
  | {
      readonly type: "Condition";
      readonly test: Expression;
      readonly value: Expression;
      readonly otherwise: Expression | null;
    };

export type Body = readonly Statement[];

/** Parameters of a macro or call block; the last ones have the defaults. */
export interface Signature {
  readonly parameters: readonly string[];
  readonly defaults: readonly Expression[];
}

export type If = {
  readonly type: "If";
  readonly branches: readonly { readonly test: Expression; readonly body: Body }[];
  readonly otherwise: Body;
};
export type For = {
  readonly type: "For";
  readonly target: Expression;
  readonly iterable: Expression;
  readonly test: Expression | null;
  readonly isRecursive: boolean;
  readonly body: Body;
  readonly otherwise: Body;
};
export type Macro = { readonly type: "Macro"; readonly name: string; readonly body: Body } & Signature;
export type CallBlock = { readonly type: "CallBlock"; readonly call: Call; readonly body: Body } & Signature;
export type With = {
  readonly type: "With";
  readonly targets: readonly Expression[];
  readonly values: readonly Expression[];
  readonly body: Body;
};
export type SetBlock = {
  readonly type: "SetBlock";
  readonly target: Expression;
  readonly filter: Filter | null;
  readonly body: Body;
};
export type Block = { readonly type: "Block"; readonly name: string; readonly isScoped: boolean; readonly body: Body };

export type Statement =
  | If
  | For
  | Macro
  | CallBlock
  | With
  | SetBlock
  | Block
  | { readonly type: "Text"; readonly text: string }
  | { readonly type: "Print"; readonly nodes: readonly Expression[] }
  | { readonly type: "Set"; readonly target: Expression; readonly value: Expression }
  | { readonly type: "FilterBlock"; readonly filter: Filter; readonly body: Body }
  | { readonly type: "Autoescape"; readonly value: Expression; readonly body: Body }
  | { readonly type: "Generation"; readonly body: Body }
  | { readonly type: "Break" | "Continue" };
