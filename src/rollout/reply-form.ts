import { ChoiceConstraint } from "../generation/constraints/choices.js";
import { type Pattern, patternKey } from "../generation/constraints/pattern.js";
import type { LanguageModel } from "../generation/language-model.js";

/** What a reply is held to: one of these texts, or all texts of a pattern. */
export type ReplyForm = { readonly choices: readonly string[] } | Pattern;

/** Says which tokens may come next, for one form behind prompts of one kind. */
export interface HeldReply {
  /** The tokens that may follow the reply's first ones; none where it is over. */
  allowed(tokens: readonly number[]): Int32Array;
  /** The most tokens that a reply has. */
  readonly longest: number;
  /** The tokens of a text, with the end token where it needs one; undefined for a text that is not in this form. */
  encode(text: string): readonly number[] | undefined;
}

/** Equal for forms that allow the same replies. */
export function formKey(form: ReplyForm): string {
  return "choices" in form ? form.choices.join("\u0000") : patternKey(form);
}

/** What a text is that is not in a form, for messages. */
export function refusal(form: ReplyForm): string {
  if ("choices" in form) return `none of the choices ${JSON.stringify(form.choices)}`;
  return "regex" in form
    ? `no match of the pattern ${typeof form.regex === "string" ? JSON.stringify(form.regex) : String(form.regex)}`
    : `not what the JSON schema ${JSON.stringify(form.jsonSchema)} allows`;
}

/**
 * What holds replies behind a prompt that ends with this token to a form. A pattern's have at most `maxNewTokens`; a choice may be
 * longer. Throws INVALID_ARGUMENT for choices that tokenise alike, and for a pattern that is not supported, allows no text, or
 * needs more tokens; TOKENIZER_UNSUPPORTED for a pattern with a tokenizer that puts text between tokens.
 */
export function holdReply(
  model: LanguageModel,
  form: ReplyForm,
  { previousToken, maxNewTokens }: { readonly previousToken: number | undefined; readonly maxNewTokens: number },
): HeldReply {
  const { tokenizer } = model;
  const endToken = tokenizer.eosTokenId ?? model.endTokenIds.at(0);
  if ("choices" in form) {
    const { choices } = form;
    const constraint = ChoiceConstraint.ofTexts(tokenizer, choices, { previousToken, endToken });
    const numbers = new Map(choices.map((choice, index) => [choice, index]));
    const encode = (text: string) => (numbers.has(text) ? constraint.sequences[numbers.get(text)!] : undefined);
    return { longest: constraint.longest, allowed: (tokens) => constraint.allowed(tokens), encode };
  }
  // Behind a special token, such as those of a chat template, a text begins; behind others it goes on.
  const start = previousToken === undefined || tokenizer.isSpecial(previousToken) ? "fresh" : "continued";
  const constraint = model.patternConstraint(form, { start, maxTokens: maxNewTokens });
  const anyLength = model.patternConstraint(form, { start });
  return {
    longest: maxNewTokens,
    allowed: (tokens) => constraint.allowed(tokens),
    encode: (text) => {
      const tokens = tokenizer.encodeContinuation(text, previousToken);
      const ended = endToken === undefined ? [] : [...tokens, endToken];
      return [tokens, ended].find((all) => anyLength.isComplete(all));
    },
  };
}
