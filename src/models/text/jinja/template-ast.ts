import type { Value } from "./values.js";

// The nodes of a parsed template, after jinja2.nodes.

export interface Arguments {
  readonly args: readonly TemplateExpression[];
  readonly kwargs: readonly (readonly [name: string, value: TemplateExpression])[];
  readonly spreadArgs: TemplateExpression | null;
  readonly spreadKwargs: TemplateExpression | null;
}

export type Name = { readonly type: "Name"; readonly name: string };
export type Call = { readonly type: "Call"; readonly callee: TemplateExpression } & Arguments;
/** A filter; the node of `{% filter %}` and `{% set %}` blocks is their body's text. */
export type Filter = {
  readonly type: "Filter";
  readonly node: TemplateExpression | null;
  readonly name: string;
} & Arguments;
export type Test = { readonly type: "Test"; readonly node: TemplateExpression; readonly name: string } & Arguments;
export type NamespaceReference = {
  readonly type: "NamespaceReference";
  readonly name: string;
  readonly attribute: string;
};

export type TemplateExpression =
  | Name
  | Call
  | Filter
  | Test
  | NamespaceReference
  | { readonly type: "Constant"; readonly value: Value }
  | { readonly type: "List" | "Tuple"; readonly items: readonly TemplateExpression[] }
  | {
      readonly type: "Dict";
      readonly items: readonly (readonly [key: TemplateExpression, value: TemplateExpression])[];
    }
  | { readonly type: "Attribute"; readonly node: TemplateExpression; readonly name: string }
  | { readonly type: "Item"; readonly node: TemplateExpression; readonly index: TemplateExpression }
  | { readonly type: "Slice"; readonly bounds: readonly (TemplateExpression | null)[] }
  | { readonly type: "Unary"; readonly operator: "not" | "-" | "+"; readonly node: TemplateExpression }
  | {
      readonly type: "Binary";
      readonly operator: string;
      readonly left: TemplateExpression;
      readonly right: TemplateExpression;
    }
  | { readonly type: "And" | "Or"; readonly left: TemplateExpression; readonly right: TemplateExpression }
  | {
      readonly type: "Compare";
      readonly first: TemplateExpression;
      readonly operands: readonly (readonly [operator: string, value: TemplateExpression])[];
    }
  | { readonly type: "Concat"; readonly nodes: readonly TemplateExpression[] }
  | {
      readonly type: "Condition";
      readonly test: TemplateExpression;
      readonly value: TemplateExpression;
      readonly otherwise: TemplateExpression | null;
    };

export type Body = readonly Statement[];

/** Parameters of a macro or call block; the last ones have the defaults. */
export interface Signature {
  readonly parameters: readonly string[];
  readonly defaults: readonly TemplateExpression[];
}

export type If = {
  readonly type: "If";
  readonly branches: readonly { readonly test: TemplateExpression; readonly body: Body }[];
  readonly otherwise: Body;
};
export type For = {
  readonly type: "For";
  readonly target: TemplateExpression;
  readonly iterable: TemplateExpression;
  readonly test: TemplateExpression | null;
  readonly isRecursive: boolean;
  readonly body: Body;
  readonly otherwise: Body;
};
export type Macro = { readonly type: "Macro"; readonly name: string; readonly body: Body } & Signature;
export type CallBlock = { readonly type: "CallBlock"; readonly call: Call; readonly body: Body } & Signature;
export type With = {
  readonly type: "With";
  readonly targets: readonly TemplateExpression[];
  readonly values: readonly TemplateExpression[];
  readonly body: Body;
};
export type SetBlock = {
  readonly type: "SetBlock";
  readonly target: TemplateExpression;
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
  | { readonly type: "Print"; readonly nodes: readonly TemplateExpression[] }
  | { readonly type: "Set"; readonly target: TemplateExpression; readonly value: TemplateExpression }
  | { readonly type: "FilterBlock"; readonly filter: Filter; readonly body: Body }
  | { readonly type: "Autoescape"; readonly value: TemplateExpression; readonly body: Body }
  | { readonly type: "Generation"; readonly body: Body }
  | { readonly type: "Break" | "Continue" };
