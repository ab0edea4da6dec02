// The packages' declarations use imports without file extensions, which TypeScript does not resolve
// for ES modules; these declare what src/models/text uses.

declare module "@huggingface/jinja" {
  /** A runtime value. */
  export interface Value {
    readonly type: string;
    value: unknown;
    readonly builtins: ReadonlyMap<string, Value>;
    __bool__(): { readonly value: boolean };
  }

  /** A parsed node. */
  export interface TemplateNode {
    readonly type: string;
  }

  export interface Program extends TemplateNode {
    readonly body: TemplateNode[];
  }

  export class Environment {
    readonly variables: Map<string, Value>;
    constructor(parent?: Environment);
    set(name: string, content: unknown): Value;
    setVariable(name: string, value: Value): Value;
    lookupVariable(name: string): Value;
  }

  export class Interpreter {
    constructor(environment: Environment);
    run(program: Program): Value;
    evaluate(statement: TemplateNode | undefined, environment: Environment): Value;
  }

  export function tokenize(
    source: string,
    options: { trim_blocks: boolean; lstrip_blocks: boolean },
  ): readonly object[];
  export function parse(tokens: readonly object[]): Program;
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
