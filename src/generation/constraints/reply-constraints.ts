import type { Tokenizer } from "../../text/index.js";
import { ChoiceConstraint } from "./choices.js";
import { type Pattern, compilePattern, patternKey } from "./pattern.js";
import { PatternConstraint, type PatternConstraintOptions } from "./pattern-constraint.js";
import { TokenAutomaton } from "./token-automaton.js";
import { Vocabulary } from "./vocabulary.js";

/** Patterns that are kept compiled. */
const MOST_KEPT = 16;

export interface ReplyConstraintsOptions {
  /** Throws where the model has none. */
  readonly tokenizer: () => Tokenizer;
  /** Rows of the model's embedding. */
  readonly vocabSize: number;
  /** All tokens that end a reply. */
  readonly endTokens: () => readonly number[];
}

/** Makes what holds a model's replies; what a pattern compiles to is kept for the next reply. */
export class ReplyConstraints {
  private readonly compiled = new Map<string, TokenAutomaton>();
  private vocabulary: Vocabulary | undefined;

  constructor(private readonly options: ReplyConstraintsOptions) {}

  /** Throws as ChoiceConstraint does. `previousToken` is the prompt's last. */
  choices(choices: readonly string[], previousToken: number | undefined): ChoiceConstraint {
    return ChoiceConstraint.ofTexts(this.options.tokenizer(), choices, { previousToken, endToken: this.endToken() });
  }

  /**
   * Throws INVALID_ARGUMENT for a pattern that is not supported or cannot be met within the options, TOKENIZER_UNSUPPORTED for a
   * tokenizer that puts text between tokens.
   */
  pattern(pattern: Pattern, options: PatternConstraintOptions): PatternConstraint {
    return new PatternConstraint(this.automaton(pattern), options);
  }

  private automaton(pattern: Pattern): TokenAutomaton {
    const key = patternKey(pattern);
    const automaton = this.compiled.get(key) ?? this.compile(pattern);
    this.compiled.delete(key);
    this.compiled.set(key, automaton);
    for (const oldest of this.compiled.keys()) if (this.compiled.size > MOST_KEPT) this.compiled.delete(oldest);
    return automaton;
  }

  private compile(pattern: Pattern): TokenAutomaton {
    const automaton = compilePattern(pattern);
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
