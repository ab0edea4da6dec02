import { IncrementalDetokenizer } from "../../src/generation/incremental-detokenizer.js";
import type { ConstraintCursor, TokenConstraint } from "../../src/generation/constraints/compiled-constraint.js";
import { type TextPattern, compileToByteAutomaton } from "../../src/generation/constraints/output-constraint.js";
import {
  PatternConstraint,
  type PatternConstraintOptions,
} from "../../src/generation/constraints/pattern-constraint.js";
import { TokenAutomaton } from "../../src/generation/constraints/token-automaton.js";
import { Vocabulary } from "../../src/generation/constraints/vocabulary.js";
import type { RandomStream } from "../../src/core/random/random-stream.js";
import type { Tokenizer } from "../../src/models/text/index.js";

/** Creates the vocabulary of a model with as many tokens as the tokenizer. */
export function createVocabulary(tokenizer: Tokenizer): Vocabulary {
  const { eosTokenId, eosTokenIds, vocabSize } = tokenizer;
  return new Vocabulary(tokenizer, { vocabSize, endToken: eosTokenId, endTokens: eosTokenIds });
}

export function createPatternConstraint(
  vocabulary: Vocabulary,
  pattern: TextPattern,
  options: PatternConstraintOptions = {},
) {
  return new PatternConstraint(new TokenAutomaton(compileToByteAutomaton(pattern), vocabulary), options);
}

/** Returns a constraint's cursor after the given tokens. */
export function cursorAfter(constraint: TokenConstraint, tokens: readonly number[]): ConstraintCursor {
  const cursor = constraint.cursor();
  for (const token of tokens) cursor.advance(token);
  return cursor;
}

/** Creates a constraint from the tokens allowed after the tokens so far. */
export function constraintOf(allowedAfter: (tokens: readonly number[]) => Iterable<number>): TokenConstraint {
  return {
    cursor: () => {
      const tokens: number[] = [];
      return {
        get allowedTokens() {
          return Int32Array.from(allowedAfter(tokens));
        },
        get isComplete() {
          return this.allowedTokens.length === 0;
        },
        advance: (token) => void tokens.push(token),
      };
    },
  };
}

/** Samples a completion with all allowed tokens equally likely. */
export function sampleRandomTokens(constraint: TokenConstraint, random: RandomStream): number[] {
  const tokens: number[] = [];
  const cursor = constraint.cursor();
  while (!cursor.isComplete) {
    const { allowedTokens } = cursor;
    const token = allowedTokens[random.integers(0, allowedTokens.length)];
    tokens.push(token);
    cursor.advance(token);
  }
  return tokens;
}

/**
 * Decodes a completion as LanguageModel does; `previousToken` is the prompt's last if the
 * completion continues it.
 */
export function detokenize(tokenizer: Tokenizer, tokens: readonly number[], previousToken?: number): string {
  const text = new IncrementalDetokenizer(tokenizer, {
    stop: [],
    stopTokens: new Set(tokenizer.eosTokenIds),
    previousToken,
  });
  for (const token of tokens) text.push(token);
  text.flush();
  return text.text;
}
