import type { Tokenizer } from "../../models/text/index.js";
import { ChoiceConstraint } from "./choice-constraint.js";
import { type TextPattern, compileToByteAutomaton, patternKey } from "./text-pattern.js";
import { PatternConstraint, type PatternConstraintOptions } from "./pattern-constraint.js";
import { TokenAutomaton } from "./token-automaton.js";
import { Vocabulary } from "./vocabulary.js";

/** Patterns that are kept compiled. */
const MAX_CACHED_PATTERNS = 16;

export interface ConstraintCompilerOptions {
  /** Throws where the model has none. */
  readonly tokenizer: () => Tokenizer;
  /** Rows of the model's embedding. */
  readonly vocabSize: number;
  /** All tokens that end a reply. */
  readonly endTokens: () => readonly number[];
}

/** Makes what holds a model's replies; what a pattern compiles to is kept for the next reply. */
export class ConstraintCompiler {
  private readonly compiled = new Map<string, TokenAutomaton>();
  private vocabulary: Vocabulary | undefined;

  constructor(private readonly options: ConstraintCompilerOptions) {}

  /** Throws as ChoiceConstraint does. `previousToken` is the prompt's last. */
  compileChoices(texts: readonly string[], previousToken: number | undefined): ChoiceConstraint {
    return ChoiceConstraint.fromTexts(this.options.tokenizer(), texts, { previousToken, endToken: this.endToken() });
  }

  /**
   * Throws INVALID_ARGUMENT for a pattern that is not supported or cannot be met within the options, TOKENIZER_UNSUPPORTED for a
   * tokenizer that puts text between tokens.
   */
  compilePattern(textPattern: TextPattern, options: PatternConstraintOptions): PatternConstraint {
    return new PatternConstraint(this.automaton(textPattern), options);
  }

  private automaton(textPattern: TextPattern): TokenAutomaton {
    const key = patternKey(textPattern);
    const automaton = this.compiled.get(key) ?? this.compile(textPattern);
    this.compiled.delete(key);
    this.compiled.set(key, automaton);
    for (const oldest of this.compiled.keys())
      if (this.compiled.size > MAX_CACHED_PATTERNS) this.compiled.delete(oldest);
    return automaton;
  }

  private compile(textPattern: TextPattern): TokenAutomaton {
    const automaton = compileToByteAutomaton(textPattern);
    const { tokenizer, vocabSize, endTokens } = this.options;
    this.vocabulary ??= new Vocabulary(tokenizer(), { vocabSize, endToken: this.endToken(), endTokens: endTokens() });
    return new TokenAutomaton(automaton, this.vocabulary);
  }

  /** The token that ends a reply which could go on. */
  private endToken(): number | undefined {
    const { tokenizer, endTokens } = this.options;
    return tokenizer().eosTokenId ?? endTokens().at(0);
  }
}
