// The packages' declarations use imports without file extensions, which TypeScript does not resolve
// for ES modules; these declare what src/models/text uses.

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
