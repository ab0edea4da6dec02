import { ChoiceConstraint } from "./constraints/choice-constraint.js";
import { type TextPattern, patternKey } from "./constraints/text-pattern.js";
import type { LanguageModel } from "./language-model.js";

/** What a reply is held to: one of these texts, or all texts of a pattern. */
export type OutputConstraint = { readonly choices: readonly string[] } | TextPattern;

/** Says which tokens may come next, for one form behind prompts of one kind. */
export interface CompiledConstraint {
  /** The tokens that may follow the reply's first ones; none where it is over. */
  allowedTokens(tokens: readonly number[]): Int32Array;
  /** The most tokens that a reply has. */
  readonly maxLength: number;
  /** The tokens of a text, with the end token where it needs one; undefined for a text that is not in this form. */
  encode(text: string): readonly number[] | undefined;
}

/** Equal for forms that allow the same replies. */
export function constraintKey(constraint: OutputConstraint): string {
  return "choices" in constraint ? constraint.choices.join("\u0000") : patternKey(constraint);
}

/** What a text is that is not in a form, for messages. */
export function describeViolation(constraint: OutputConstraint): string {
  if ("choices" in constraint) return `none of the choices ${JSON.stringify(constraint.choices)}`;
  return "regex" in constraint
    ? `no match of the pattern ${typeof constraint.regex === "string" ? JSON.stringify(constraint.regex) : String(constraint.regex)}`
    : `not what the JSON schema ${JSON.stringify(constraint.jsonSchema)} allows`;
}

/**
 * What holds replies behind a prompt that ends with this token to a form. A pattern's have at most `maxNewTokens`; a choice may be
 * longer. Throws INVALID_ARGUMENT for choices that tokenise alike, and for a pattern that is not supported, allows no text, or
 * needs more tokens; TOKENIZER_UNSUPPORTED for a pattern with a tokenizer that puts text between tokens.
 */
export function compileConstraint(
  model: LanguageModel,
  constraint: OutputConstraint,
  { previousToken, maxNewTokens }: { readonly previousToken: number | undefined; readonly maxNewTokens: number },
): CompiledConstraint {
  const { tokenizer } = model;
  const endToken = tokenizer.eosTokenId ?? model.endTokenIds.at(0);
  if ("choices" in constraint) {
    const { choices } = constraint;
    const matcher = ChoiceConstraint.fromTexts(tokenizer, choices, { previousToken, endToken });
    const indexByText = new Map(choices.map((choice, index) => [choice, index]));
    const encode = (text: string) => (indexByText.has(text) ? matcher.sequences[indexByText.get(text)!] : undefined);
    return { maxLength: matcher.maxLength, allowedTokens: (tokens) => matcher.allowedTokens(tokens), encode };
  }
  // Behind a special token, such as those of a chat template, a text begins; behind others it goes on.
  const start = previousToken === undefined || tokenizer.isSpecial(previousToken) ? "fresh" : "continued";
  const matcher = model.compilePattern(constraint, { start, maxNewTokens });
  const unboundedMatcher = model.compilePattern(constraint, { start });
  return {
    maxLength: maxNewTokens,
    allowedTokens: (tokens) => matcher.allowedTokens(tokens),
    encode: (text) => {
      const tokens = tokenizer.encodeContinuation(text, previousToken);
      const withEndToken = endToken === undefined ? [] : [...tokens, endToken];
      return [tokens, withEndToken].find((all) => unboundedMatcher.isComplete(all));
    },
  };
}
