import { ReplyText } from "../../src/generation/reply-text.js";
import type { TokenConstraint } from "../../src/generation/request.js";
import { type Pattern, compilePattern } from "../../src/generation/constraints/pattern.js";
import {
  PatternConstraint,
  type PatternConstraintOptions,
} from "../../src/generation/constraints/pattern-constraint.js";
import { TokenAutomaton } from "../../src/generation/constraints/token-automaton.js";
import { Vocabulary } from "../../src/generation/constraints/vocabulary.js";
import type { RandomStream } from "../../src/tensor/random.js";
import type { Tokenizer } from "../../src/text/index.js";

/** What a tokenizer's tokens write, for a model with as many tokens. */
export function vocabularyOf(tokenizer: Tokenizer): Vocabulary {
  const { eosTokenId, eosTokenIds, vocabSize } = tokenizer;
  return new Vocabulary(tokenizer, { vocabSize, endToken: eosTokenId, endTokens: eosTokenIds });
}

export function patternConstraint(vocabulary: Vocabulary, pattern: Pattern, options: PatternConstraintOptions = {}) {
  return new PatternConstraint(new TokenAutomaton(compilePattern(pattern), vocabulary), options);
}

/** The tokens of a reply of a model that finds all allowed tokens equally likely. */
export function randomReply(constraint: TokenConstraint, random: RandomStream): number[] {
  const tokens: number[] = [];
  for (;;) {
    const allowed = constraint.allowed(tokens);
    if (allowed === undefined || allowed.length === 0) return tokens;
    tokens.push(allowed[random.integers(0, allowed.length)]);
  }
}

/** A reply's text as a LanguageModel gives it: of its own, or behind the tokens of a prompt that it goes on with. */
export function replyText(tokenizer: Tokenizer, tokens: readonly number[], continuedFrom?: number): string {
  const text = new ReplyText(tokenizer, { stop: [], stopTokens: new Set(tokenizer.eosTokenIds), continuedFrom });
  for (const token of tokens) text.push(token);
  text.end();
  return text.text;
}
