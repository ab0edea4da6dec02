import type { Tokenizer } from "../../models/text/index.js";
import { runStepsWithPauses } from "../../core/steps.js";
import { LruCache } from "../../core/lru-cache.js";
import type { ByteAutomaton } from "./automaton/byte-automaton.js";
import { ChoiceConstraint } from "./choice-constraint.js";
import type { CompiledConstraint } from "./compiled-constraint.js";
import {
  buildByteAutomaton,
  compileToByteAutomaton,
  constraintKey,
  type OutputConstraint,
  type TextPattern,
} from "./output-constraint.js";
import { PatternConstraint, type PatternConstraintOptions } from "./pattern-constraint.js";
import { TokenAutomaton } from "./token-automaton.js";
import { Vocabulary } from "./vocabulary.js";

/** Maximum length of all cached lists of choices, in characters; one takes some 50 bytes. */
const MAX_CACHED_CHOICES_LENGTH = 2_000_000;

/** Maximum number of cached patterns; their automata can be large. */
const MAX_CACHED_PATTERNS = 16;

export interface ConstraintCompilerOptions {
  /** Returns the model's tokenizer, or throws if the model has none. */
  readonly tokenizer: () => Tokenizer;
  /** Rows of the model's embedding. */
  readonly vocabSize: number;
  /** Returns all tokens that end a completion. */
  readonly endTokens: () => readonly number[];
}

export interface CompileOptions extends PatternConstraintOptions {
  /** Maximum length of a completion that matches a pattern; choices are not limited. */
  readonly maxNewTokens: number;
  /**
   * A pattern of at most this many texts is compiled to them as choices, each with its usual tokens
   * only. Default 0.
   */
  readonly maxTexts?: number;
}

/** Compiles and caches the constraints on a model's completions. */
export class ConstraintCompiler {
  private readonly choiceConstraints = new LruCache<ChoiceConstraint>(MAX_CACHED_CHOICES_LENGTH, (key) => key.length);
  private readonly patternConstraints = new LruCache<PatternConstraint>(MAX_CACHED_PATTERNS);
  /** Patterns as choices; null for patterns of too many texts. */
  private readonly textConstraints = new LruCache<ChoiceConstraint | null>(MAX_CACHED_PATTERNS);
  private readonly automata = new LruCache<TokenAutomaton>(MAX_CACHED_PATTERNS);
  /** Patterns that are compiled now, by their keys. */
  private readonly preparing = new Map<string, Promise<void>>();
  private vocabulary: Vocabulary | undefined;

  constructor(private readonly options: ConstraintCompilerOptions) {}

  /**
   * Compiles choices or a pattern.
   * @throws INVALID_ARGUMENT for choices with equal tokens, and for a pattern that is unsupported,
   * matches no text or needs more than `maxNewTokens`.
   * @throws TOKENIZER_UNSUPPORTED for a pattern if the tokenizer inserts text between tokens.
   */
  compile(constraint: OutputConstraint, options: CompileOptions): CompiledConstraint {
    if ("choices" in constraint) return this.compileChoices(constraint.choices, options.previousToken);
    const pattern = this.compilePattern(constraint, options);
    return this.compileTexts(constraintKey(constraint), pattern, options) ?? pattern;
  }

  /**
   * Returns the texts of a compiled pattern as choices; undefined if they are too many, too long or
   * have other tokens.
   */
  private compileTexts(key: string, pattern: PatternConstraint, options: CompileOptions): ChoiceConstraint | undefined {
    const { start, previousToken, maxNewTokens, maxTexts = 0 } = options;
    if (maxTexts === 0) return undefined;
    const constraint = this.textConstraints.getOrCreate(`${start};${previousToken};${maxTexts};${key}`, () => {
      const texts = pattern.listTexts(maxTexts);
      const sequences = texts?.flatMap((text) => {
        const tokens = pattern.encode(text);
        return tokens === undefined ? [] : [tokens];
      });
      const isComplete = texts !== undefined && sequences?.length === texts.length;
      return isComplete ? new ChoiceConstraint(sequences, this.endToken(), texts) : null;
    });
    return constraint !== null && constraint.maxLength <= maxNewTokens ? constraint : undefined;
  }

  /** Compiles choices that follow `previousToken`. Throws as ChoiceConstraint does. */
  compileChoices(texts: readonly string[], previousToken: number | undefined): ChoiceConstraint {
    return this.choiceConstraints.getOrCreate(`${previousToken};${constraintKey({ choices: texts })}`, () =>
      ChoiceConstraint.fromTexts(this.options.tokenizer(), texts, { previousToken, endToken: this.endToken() }),
    );
  }

  /** Compiles a pattern. Throws as `compile` does. */
  compilePattern(pattern: TextPattern, options: PatternConstraintOptions): PatternConstraint {
    const { start, previousToken, maxNewTokens } = options;
    const key = constraintKey(pattern);
    const fullKey = `${start};${previousToken};${maxNewTokens};${key}`;
    // Texts of nested values lead to ever more states; cursors keep the automaton that they began
    // with.
    if (this.patternConstraints.get(fullKey)?.isLarge === true) this.patternConstraints.delete(fullKey);
    if (this.automata.get(key)?.isLarge === true) this.automata.delete(key);
    return this.patternConstraints.getOrCreate(
      fullKey,
      () =>
        new PatternConstraint(
          this.automata.getOrCreate(key, () => this.toTokenAutomaton(compileToByteAutomaton(pattern))),
          options,
        ),
    );
  }

  /**
   * Compiles a pattern with pauses, for `compile` and `compilePattern` to find it. Throws as they
   * do.
   */
  async prepare(pattern: TextPattern): Promise<void> {
    const key = constraintKey(pattern);
    if (this.automata.get(key) !== undefined) return;
    let pending = this.preparing.get(key);
    if (pending === undefined) {
      pending = runStepsWithPauses(buildByteAutomaton(pattern))
        .then((automaton) => this.automata.set(key, this.toTokenAutomaton(automaton)))
        .finally(() => this.preparing.delete(key));
      this.preparing.set(key, pending);
    }
    await pending;
  }

  private toTokenAutomaton(automaton: ByteAutomaton): TokenAutomaton {
    const { tokenizer, vocabSize, endTokens } = this.options;
    this.vocabulary ??= new Vocabulary(tokenizer(), { vocabSize, endToken: this.endToken(), endTokens: endTokens() });
    return new TokenAutomaton(automaton, this.vocabulary);
  }

  /** The token that ends a completion that could continue. */
  private endToken(): number | undefined {
    const { tokenizer, endTokens } = this.options;
    return tokenizer().eosTokenId ?? endTokens().at(0);
  }
}
