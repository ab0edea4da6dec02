import { IncrementalDetokenizer } from "../../src/generation/incremental-detokenizer.js";
import type { TokenConstraint } from "../../src/generation/sampling/sample-request.js";
import { type TextPattern, compileToByteAutomaton } from "../../src/generation/constraints/text-pattern.js";
import {
  PatternConstraint,
  type PatternConstraintOptions,
} from "../../src/generation/constraints/pattern-constraint.js";
import { TokenAutomaton } from "../../src/generation/constraints/token-automaton.js";
import { Vocabulary } from "../../src/generation/constraints/vocabulary.js";
import type { RandomStream } from "../../src/core/random/random-stream.js";
import type { Tokenizer } from "../../src/models/text/index.js";

/** What a tokenizer's tokens write, for a model with as many tokens. */
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

/** The tokens of a reply of a model that finds all allowed tokens equally likely. */
export function sampleRandomTokens(constraint: TokenConstraint, random: RandomStream): number[] {
  const tokens: number[] = [];
  for (;;) {
    const allowed = constraint.allowedTokens(tokens);
    if (allowed === undefined || allowed.length === 0) return tokens;
    tokens.push(allowed[random.integers(0, allowed.length)]);
  }
}

/** A reply's text as a LanguageModel gives it: of its own, or behind the tokens of a prompt that it goes on with. */
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
