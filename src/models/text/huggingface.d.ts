// The packages' declarations use imports without file extensions, which TypeScript does not resolve
// for ES modules; these declare what src/models/text uses.

declare module "@huggingface/jinja" {
  interface Node<Type extends string> {
    readonly type: Type;
  }

  interface Literal<Type extends string, Value> extends Node<Type> {
    readonly value: Value;
  }

  interface Operation<Type extends string> extends Node<Type> {
    readonly operator: { readonly value: string };
  }

  type Body = readonly TemplateNode[];

  export type Identifier = Literal<"Identifier", string>;

  export interface CallExpression extends Node<"CallExpression"> {
    readonly callee: Expression;
    readonly args: readonly Expression[];
  }

  export interface SliceExpression extends Node<"SliceExpression"> {
    readonly start?: Expression;
    readonly stop?: Expression;
    readonly step?: Expression;
  }

  export interface KeywordArgument extends Node<"KeywordArgumentExpression"> {
    readonly key: Identifier;
    readonly value: Expression;
  }

  /** A parameter of a macro, with or without a default. */
  export type Parameter = Identifier | KeywordArgument;

  type Filter = Identifier | CallExpression;

  /** A parsed expression; text and printed expressions are statements too. */
  export type Expression =
    | Identifier
    | CallExpression
    | SliceExpression
    | KeywordArgument
    | Literal<"StringLiteral", string>
    | Literal<"IntegerLiteral" | "FloatLiteral", number>
    | (Node<"ArrayLiteral" | "TupleLiteral"> & { readonly value: readonly Expression[] })
    | (Node<"ObjectLiteral"> & { readonly value: ReadonlyMap<Expression, Expression> })
    | (Node<"MemberExpression"> & { readonly object: Expression; readonly property: Expression; computed: boolean })
    | (Operation<"UnaryExpression"> & { readonly argument: Expression })
    | (Operation<"BinaryExpression"> & { readonly left: Expression; readonly right: Expression })
    | (Node<"FilterExpression"> & { readonly operand: Expression; readonly filter: Filter })
    | (Node<"TestExpression"> & { readonly operand: Expression; readonly negate: boolean; readonly test: Identifier })
    | (Node<"SelectExpression"> & { readonly lhs: Expression; readonly test: Expression })
    | (Node<"Ternary"> & {
        readonly condition: Expression;
        readonly trueExpr: Expression;
        readonly falseExpr: Expression;
      })
    | (Node<"SpreadExpression" | "KeywordSpreadExpression"> & { readonly argument: Expression });

  export interface For extends Node<"For"> {
    readonly loopvar: Expression;
    readonly iterable: Expression;
    readonly body: Body;
    readonly defaultBlock: Body;
  }

  export type TemplateNode =
    | Expression
    | For
    | Node<"Break" | "Continue" | "Comment">
    | (Node<"If"> & { readonly test: Expression; readonly body: Body; readonly alternate: Body })
    | (Node<"Set"> & { readonly assignee: Expression; readonly value: Expression | null; readonly body: Body })
    | (Node<"Macro"> & { readonly name: Identifier; readonly args: readonly Parameter[]; readonly body: Body })
    | (Node<"CallStatement"> & {
        readonly call: CallExpression;
        readonly callerArgs: readonly Parameter[] | null;
        readonly body: Body;
      })
    | (Node<"FilterStatement"> & { readonly filter: Filter; readonly body: Body });

  export function tokenize(
    source: string,
    options: { trim_blocks: boolean; lstrip_blocks: boolean },
  ): readonly object[];
  export function parse(tokens: readonly object[]): { readonly body: Body };
}

declare module "@huggingface/tokenizers" {
  type Config = Readonly<Record<string, unknown>>;

  export class BertNormalizer {
    constructor(config: Config);
    normalize(text: string): string;
  }

  export class PrecompiledNormalizer {
    constructor(config: Config);
    normalize(text: string): string;
  }

  export class SplitPreTokenizer {
    constructor(config: Config);
    readonly pattern: RegExp | null;
  }

  export class Unigram {
    constructor(config: Config, eosToken: string);
    /** Tokens of the best path; characters without a token represent themselves. */
    tokenize(text: string): string[];
  }
}
